// plait.numpy: elements by index, positions of true elements, distinct elements.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/numpy_edits.h>
#include <plait/primitives/narrow.h>
#include <plait/trace/data_sizes.h>

#include <limits>

#include "functions/functions.h"
#include "functions/known_numbers.h"
#include "functions/numpy/known_values.h"
#include "functions/numpy/runs.h"
#include "functions/one_program.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

using lax::GatherScatterMode;

struct TakeMode {
  bool wrap = false;
  GatherScatterMode gather = GatherScatterMode::fill;
};
TakeMode take_mode(const std::optional<std::string>& mode, std::optional<double> fill_value,
                   std::string_view function) {
  if (mode ? *mode == "fill" : fill_value.has_value()) return {};
  if (!mode || *mode == "raise") return {false, GatherScatterMode::check};
  if (*mode == "wrap") return {true, GatherScatterMode::promise};
  if (*mode == "clip") return {false, GatherScatterMode::clip};
  if (*mode == "promise") return {false, GatherScatterMode::promise};
  throw ValueError(std::string(function) + ": mode is '" + *mode + "'",
                   "choose 'raise', 'fill', 'clip', 'wrap' or 'promise'");
}

void require_indices(std::string_view function, const Array& indices) {
  if (!is_integer(indices.dtype()))
    throw DtypeError(
        std::string(function) + ": indices have dtype " + std::string(name_of(indices.dtype())),
        is_bool(indices.dtype()) ? "use compress or nonzero for masks"
                                 : "convert them with astype");
}

// Indices as strong integers from 0: negative ones count from the end, or all modulo the size.
Array normalized(const Array& indices, Dim size, const TakeMode& mode) {
  const DType dtype = index_dtype(indices);
  const Array index =
      astype(indices, is_unsigned_integer(dtype) && size_of(dtype) < 4 ? default_int() : dtype);
  const Array n = number_of(size, index.dtype());
  if (mode.wrap) return numpy::remainder(index, n);
  if (mode.gather == GatherScatterMode::clip || is_unsigned_integer(index.dtype())) return index;
  if (is_known(index) && !has_negative(index)) return index;
  return lax::select(lax::lt(index, constant(0, index)), lax::add(index, n), index);
}

Array as_rows(const Array& indices) {
  Shape shape = indices.shape();
  shape.push_back(1);
  return lax::reshape(indices, shape);
}

}  // namespace

Array numpy::take(Operand a, Operand indices, std::optional<int> axis,
                  const std::optional<std::string>& mode, std::optional<double> fill_value) {
  require_indices("take", indices);
  const Array x = axis ? Array(a) : raveled(a);
  const int dim = normalize_axis(axis.value_or(0), x.ndim(), "take");
  const TakeMode how = take_mode(mode, fill_value, "take");
  const Array index = normalized(indices, x.shape(dim), how);
  Shape window = x.shape();
  window[dim] = 1;
  const Array rows =
      lax::gather(x, as_rows(index), {{dim}, {dim}, 0}, window, how.gather, fill_value);
  if (dim == 0) return rows;
  // The axes of the indices come first; they move to where the axis was.
  const int count = index.ndim();
  std::vector<int> order;
  for (int i = 0; i < dim; ++i) order.push_back(count + i);
  for (int i = 0; i < count; ++i) order.push_back(i);
  for (int i = dim; i < x.ndim() - 1; ++i) order.push_back(count + i);
  return lax::transpose(rows, order);
}

Array numpy::take_along_axis(Operand arr, Operand indices, std::optional<int> axis,
                             const std::optional<std::string>& mode,
                             std::optional<double> fill_value) {
  require_indices("take_along_axis", indices);
  if (!axis) return take_along_axis(raveled(arr), raveled(indices), 0, mode, fill_value);
  if (arr.ndim() != indices.ndim())
    throw ShapeError("take_along_axis: indices of shape (" + indices.shape().to_string() +
                         ") for an array of shape (" + arr.shape().to_string() + ")",
                     "give indices of as many axes");
  const int dim = normalize_axis(*axis, arr.ndim(), "take_along_axis"), last = arr.ndim() - 1;
  const TakeMode how = take_mode(mode, fill_value, "take_along_axis");
  Array x = moved(arr, dim, last),
        index = moved(normalized(indices, arr.shape(dim), how), dim, last);
  const Shape shapes[] = {Shape(x.shape().begin(), x.shape().end() - 1),
                          Shape(index.shape().begin(), index.shape().end() - 1)};
  const Shape batch = plait::broadcast_shapes(shapes, "take_along_axis");
  auto spread = [&](const Array& array) {
    Shape shape = batch;
    shape.push_back(array.shape(last));
    return plait::broadcast_to(array, shape);
  };
  const Array picked = lax::gather(spread(x), as_rows(spread(index)), {{last}, {last}, last},
                                   Shape{1}, how.gather, fill_value);
  return moved(picked, last, dim);
}

// --- Places --------------------------------------------------------------------------------------

namespace {

// The positions of true elements of a row, as the default integer: so many as size says, of which
// some may not be real, or all there are. Then their number may be a size from data, and others
// that belong to them are computed for room of them.
struct Places {
  Array index, is_real;  // is_real: only where a size is given
  Dim count, room;

  // The part of values that belongs to them.
  Array of(const Array& values) const { return room == count ? values : part(values, 0, 0, count); }
};
Places places_of(const Array& mask, std::optional<Dim> size, std::string_view function) {
  Places places;
  if (!size && is_known(mask)) {
    places.index = places_of_true(mask);
    places.count = places.room = places.index.shape(0);
    return places;
  }
  const Dim n = mask.shape(0);
  if (size) {
    places.count = places.room = *size;
  } else {
    const Array count = lax::convert_element_type(numpy::count_nonzero(mask), DType::int32);
    places.count = size_from_data(count, n, function);
    places.room = count.known_buffer() ? places.count : n;
  }
  const Array running = lax::cumsum(astype(mask, default_int()), 0);
  // Each true element goes to the position that its count gives; the others are dropped.
  const Array target =
      lax::select(mask, lax::sub(running, constant(1, running)),
                  lax::broadcast_in_dim(number_of(places.room, default_int()), mask.shape(), {}));
  const Array index =
      lax::scatter(lax::full({places.room}, 0, default_int()), as_rows(target), counting(n),
                   {{0}, {0}, 0}, lax::ScatterKind::set, {GatherScatterMode::fill, true, false});
  places.index = places.of(index);
  if (!size) return places;
  const Array total = n == Dim(0)
                          ? Array::literal(0, default_int())
                          : lax::reduce_sum(astype(mask, default_int()), std::vector<int>{0});
  places.is_real = lax::lt(counting(*size), total);
  return places;
}

Array filled_up(const Array& values, const Array& is_real, double fill_value) {
  return lax::select(is_real, values, filled(fill_value, values));
}

std::vector<Array> indices_of_places(const Array& places, const Shape& shape) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const bool counts_in_any = shape.is_constant() && !(shape.num_elements() == Dim(0)) &&
                             less_equal(shape.num_elements(), most) == true;
  if (counts_in_any && places.dtype() == default_int() && !places.aval().weak && is_known(places))
    return indices_along_axes(places, shape.to_sizes());
  std::vector<Array> result(shape.size());
  Array rest = astype(places, index_dtype(places));
  for (int i = shape.rank() - 1; i > 0; --i) {
    const Array size = number_of(shape[i], rest.dtype());
    result[i] = numpy::remainder(rest, size);
    rest = numpy::floor_divide(rest, size);
  }
  if (!result.empty()) result[0] = rest;
  return result;
}

}  // namespace

namespace {

// fill_values: one for each axis.
std::vector<Array> nonzero_filled(const Array& a, std::optional<Dim> size,
                                  const std::vector<double>& fill_values) {
  if (a.ndim() == 0)
    throw ValueError("nonzero: an array without axes has no indices",
                     "give nonzero(atleast_1d(a)), or ask the value itself");
  if (int(fill_values.size()) != a.ndim())
    throw ValueError("nonzero: " + std::to_string(fill_values.size()) + " fill values for " +
                         std::to_string(a.ndim()) + " axes",
                     "give one, or one for each axis");
  const Places places = places_of(raveled(truth(a)), size, "nonzero");
  std::vector<Array> result = indices_of_places(places.index, a.shape());
  if (size)
    for (std::size_t axis = 0; axis < result.size(); ++axis)
      result[axis] = filled_up(result[axis], places.is_real, fill_values[axis]);
  return result;
}

}  // namespace

std::vector<Array> numpy::nonzero(Operand a, std::optional<Dim> size, double fill_value) {
  return nonzero_filled(a, size, std::vector<double>(a.ndim(), fill_value));
}
Array numpy::flatnonzero(Operand a, std::optional<Dim> size, double fill_value) {
  return nonzero(raveled(a), size, fill_value)[0];
}
Array numpy::argwhere(Operand a, std::optional<Dim> size, double fill_value) {
  const std::vector<Array> indices = nonzero(atleast_1d(a), size, fill_value);
  return a.ndim() == 0 ? lax::full({indices[0].shape(0), 0}, 0, default_int()) : stack(indices, 1);
}

Array numpy::compress(Operand condition, Operand a, std::optional<int> axis,
                      std::optional<Dim> size, double fill_value) {
  const Array x = axis ? Array(a) : raveled(a);
  const int dim = normalize_axis(axis.value_or(0), x.ndim(), "compress");
  const Array mask = truth(condition);
  if (mask.ndim() != 1 || less_equal(mask.shape(0), x.shape(dim)) == false)
    throw ShapeError("compress: a condition of shape (" + mask.shape().to_string() +
                         ") for an axis of size " + x.shape(dim).to_string(),
                     "give a vector of at most that size");
  const Places places = places_of(mask, size, "compress");
  const Array taken = take(x, places.index, dim, "fill");
  if (!size) return taken;
  const Array is_real = lax::broadcast_in_dim(places.is_real, taken.shape(), std::vector<int>{dim});
  return filled_up(taken, is_real, fill_value);
}

std::vector<Array> numpy::unravel_index(Operand indices, const Shape& shape) {
  require_indices("unravel_index", indices);
  if (const Dim size = shape.num_elements(); size.is_constant())
    if (any_known<std::int64_t>(
            indices, [&](std::int64_t place) { return place < 0 || place >= size.constant(); }))
      throw IndexError(
          "unravel_index: a place lies outside of an array of shape (" + shape.to_string() + ")",
          "give places from 0 to " + (size - 1).to_string());
  return indices_of_places(indices, shape);
}

Array numpy::ravel_multi_index(Operands multi_index, const Shape& dims) {
  if (multi_index.size() != dims.size())
    throw ValueError("ravel_multi_index: " + std::to_string(multi_index.size()) +
                         " index arrays for " + std::to_string(dims.size()) + " axes",
                     "give one for each axis");
  // Places may need more bits than the indices of each axis.
  DType dtype = multi_index[0].dtype();
  for (const Array& index : multi_index) dtype = promote_types(dtype, index.dtype());
  std::int64_t total = 1;
  bool fits = size_of(dtype) == 8;
  for (Dim dim : dims)
    if (__builtin_mul_overflow(total, dim.is_constant() ? dim.constant() : 1, &total))
      throw ValueError("ravel_multi_index: an array of shape (" + dims.to_string() +
                           ") has more places than 64 bits count",
                       "give smaller dims");
  fits = fits || total <= std::int64_t(1) << (8 * size_of(dtype) - is_signed_integer(dtype));
  const auto wide = [&](const Array& index) {
    return is_integer(dtype) && !fits ? astype(index, DType::int64) : index;
  };
  const Function body = [&](std::span<const Array> indices) {
    Array result = constant(0, wide(indices[0]));
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const Array index = wide(indices[i]);
      result = add(multiply(result, number_of(dims[i], index.dtype())), index);
    }
    return Arrays{result};
  };
  return in_one_program("ravel_multi_index", Arrays(multi_index), {{"dims", dims}},
                        multi_index[0].shape().num_elements(), body);
}

// --- Choices -------------------------------------------------------------------------------------

Array numpy::select(Operands condlist, Operands choicelist, Operand default_) {
  if (condlist.size() != choicelist.size() || condlist.empty())
    throw ValueError("select: " + std::to_string(condlist.size()) + " conditions and " +
                         std::to_string(choicelist.size()) + " choices",
                     "give as many of each, and at least one");
  Array result = default_;
  for (std::size_t i = condlist.size(); i-- > 0;)
    result = where(condlist[i], choicelist[i], result);
  return result;
}

// --- Sets ----------------------------------------------------------------------------------------

Array functions::shifted_by_one(const Array& rows) {
  std::vector<lax::Padding> padding(rows.ndim());
  padding[0] = {1, -1, 0};
  return lax::pad(rows, constant(0, rows), padding);
}
Array functions::starts_of_runs(const Array& differs) {
  const Array place = counting(differs.shape(0));
  return lax::bitwise_or(differs, lax::eq(place, filled(0, place)));
}

namespace {

// What is wanted of distinct elements besides their values.
struct UniqueParts {
  bool indices = false, inverse = false, counts = false;
};

// The row in order, and where each element was, if that is wanted.
Arrays in_order(const Array& row, const UniqueParts& parts) {
  if (!parts.indices && !parts.inverse) return {lax::sort(row, 0, true), {}};
  return lax::sort(Operands{row, counting(row.shape(0))}, 0, true, 1);
}

numpy::Unique distinct_of_known(const Array& row, const Shape& shape, bool equal_nan,
                                const UniqueParts& parts) {
  const Arrays sorted = in_order(row, parts);
  const Array places = places_of_runs(sorted[0], equal_nan);
  numpy::Unique result;
  result.values = numpy::take(sorted[0], places, 0, "promise");
  if (parts.indices) result.indices = numpy::take(sorted[1], places, 0, "promise");
  if (parts.inverse) result.inverse = lax::reshape(runs_by_place(places, sorted[1]), shape);
  if (parts.counts) result.counts = distances(places, row.shape(0).constant());
  return result;
}

numpy::Unique distinct(const Array& x, bool equal_nan, std::optional<Dim> size,
                       std::optional<double> fill_value, const UniqueParts& parts) {
  const Array row = raveled(x);
  if (!size && is_known(row)) return distinct_of_known(row, x.shape(), equal_nan, parts);
  const Dim n = row.shape(0);
  const Arrays sorted = in_order(row, parts);
  const Array &values = sorted[0], &order = sorted[1];
  const Array before = shifted_by_one(values);
  Array differs = lax::ne(values, before);
  if (equal_nan && is_inexact(values.dtype()))
    differs = lax::bitwise_and(differs,
                               lax::bitwise_or(lax::eq(values, values), lax::eq(before, before)));
  const Array is_first = starts_of_runs(differs);
  const Places places = places_of(is_first, size, "unique");
  Array kind;
  if (parts.inverse || parts.counts)
    kind =
        lax::sub(lax::cumsum(astype(is_first, default_int()), 0), Array::literal(1, default_int()));
  numpy::Unique result;
  result.values = numpy::take(values, places.index, 0, "fill");
  if (size && fill_value) result.values = filled_up(result.values, places.is_real, *fill_value);
  if (parts.indices) result.indices = numpy::take(order, places.index, 0, "fill");
  if (parts.inverse)
    result.inverse = lax::reshape(
        lax::scatter(lax::full({n}, 0, default_int()), as_rows(order), kind, {{0}, {0}, 0},
                     lax::ScatterKind::set, {GatherScatterMode::promise, true, false}),
        x.shape());
  if (parts.counts) result.counts = places.of(numpy::bincount(kind, {}, 0, places.room));
  return result;
}

}  // namespace

numpy::Unique numpy::unique_all(Operand x, bool equal_nan, std::optional<Dim> size,
                                std::optional<double> fill_value) {
  return distinct(x, equal_nan, size, fill_value, {true, true, true});
}
Array numpy::unique(Operand ar, bool equal_nan, std::optional<Dim> size,
                    std::optional<double> fill_value) {
  return distinct(ar, equal_nan, size, fill_value, {}).values;
}
std::pair<Array, Array> numpy::unique_counts(Operand x) {
  const Unique unique = distinct(x, false, {}, {}, {.counts = true});
  return {unique.values, unique.counts};
}
std::pair<Array, Array> numpy::unique_inverse(Operand x) {
  const Unique unique = distinct(x, false, {}, {}, {.inverse = true});
  return {unique.values, unique.inverse};
}
Array numpy::unique_values(Operand x) { return distinct(x, false, {}, {}, {}).values; }

Array numpy::isin(Operand element, Operand test_elements, bool invert) {
  Arrays x{element, raveled(test_elements)};
  promote_dtypes(x, "isin");
  const Dim n = x[1].shape(0);
  if (n == Dim(0)) return lax::full(element.shape(), invert, DType::bool_);
  const Array sorted = lax::sort(x[1], 0);
  const Array place = searchsorted(sorted, x[0]);
  const Array found =
      lax::eq(take(sorted, minimum(place, number_of(n - 1, place.dtype())), 0, "clip"), x[0]);
  return invert ? lax::bitwise_not(found) : found;
}

// --- Catalogue -----------------------------------------------------------------------------------

namespace {

Argument where_of(Operand condition, std::optional<Array> x, std::optional<Array> y,
                  std::optional<Dim> size, double fill_value) {
  if (x.has_value() != y.has_value())
    throw ValueError("where: x is given without y, or y without x", "give both, or neither");
  if (x) return detail::give(numpy::where(condition, *x, *y));
  return detail::give(numpy::nonzero(condition, size, fill_value));
}

// fill_value: a number, or one for each axis.
std::vector<double> fill_values_of(std::string_view function, const Argument& fill_value,
                                   int rank) {
  if (const std::optional<double> number = detail::as_double(fill_value))
    return std::vector<double>(rank, *number);
  std::vector<double> values;
  if (const auto* list = std::get_if<Argument::List>(&fill_value.value))
    for (const Argument& item : *list)
      if (const std::optional<double> number = detail::as_double(item)) values.push_back(*number);
  if (const auto* array = std::get_if<Array>(&fill_value.value); array && array->ndim() == 1)
    values = functions::astype(*array, DType::float64).to_vector<double>();
  if (int(values.size()) != rank)
    throw ValueError(std::string(function) + ": fill_value is no number, and no sequence of " +
                         std::to_string(rank) + " numbers",
                     "give one, or one for each axis");
  return values;
}
std::vector<Array> nonzero_of(Operand a, std::optional<Dim> size, const Argument& fill_value) {
  return nonzero_filled(a, size, fill_values_of("nonzero", fill_value, a.ndim()));
}
Array argwhere_of(Operand a, std::optional<Dim> size, const Argument& fill_value) {
  if (a.ndim() == 0) return numpy::argwhere(a, size);
  return numpy::stack(nonzero_filled(a, size, fill_values_of("argwhere", fill_value, a.ndim())), 1);
}

Argument unique_of(Operand ar, bool return_index, bool return_inverse, bool return_counts,
                   std::optional<int> axis, bool equal_nan, std::optional<Dim> size,
                   std::optional<double> fill_value) {
  const numpy::Unique unique = axis && ar.ndim() > 1
                                   ? numpy::unique_slices(ar, *axis, size, fill_value)
                                   : distinct(ar, equal_nan, size, fill_value,
                                              {return_index, return_inverse, return_counts});
  if (!return_index && !return_inverse && !return_counts) return detail::give(unique.values);
  Argument::List parts{unique.values};
  if (return_index) parts.push_back(unique.indices);
  if (return_inverse) parts.push_back(unique.inverse);
  if (return_counts) parts.push_back(unique.counts);
  return Argument(std::move(parts));
}

std::tuple<Array, Array, Array, Array> unique_all_of(Operand x, std::optional<Dim> size,
                                                     std::optional<double> fill_value) {
  const numpy::Unique unique = numpy::unique_all(x, false, size, fill_value);
  return {unique.values, unique.indices, unique.inverse, unique.counts};
}
std::pair<Array, Array> unique_counts_of(Operand x, std::optional<Dim> size,
                                         std::optional<double> fill_value) {
  const numpy::Unique unique = numpy::unique_all(x, false, size, fill_value);
  return {unique.values, unique.counts};
}
std::pair<Array, Array> unique_inverse_of(Operand x, std::optional<Dim> size,
                                          std::optional<double> fill_value) {
  const numpy::Unique unique = numpy::unique_all(x, false, size, fill_value);
  return {unique.values, unique.inverse};
}
Array unique_values_of(Operand x, std::optional<Dim> size, std::optional<double> fill_value) {
  return numpy::unique_all(x, false, size, fill_value).values;
}

[[maybe_unused]] const FunctionInfo* const indexing_functions[] = {
    function(
        "numpy", "where(condition, x=None, y=None, *, size=None, fill_value=0)",
        "x where the condition is true, y elsewhere, broadcast. Without x and y the places "
        "where it is, as nonzero. where(condition, f, g, *xs) with functions is f(*xs) or g(*xs) "
        "element by element; the one not taken contributes exactly zero to derivatives.",
        &where_of),
    function("numpy",
             "take(a, indices, axis=None, out=None!, mode=None, unique_indices=False!, "
             "indices_are_sorted=False!, fill_value=None)",
             "Elements (or rows along an axis) at integer indices, whose axes replace it. An index "
             "outside is an IndexError; with mode 'fill' it gives fill_value, NaN or the extreme "
             "integer, 'clip' takes the nearest, 'wrap' counts modulo the size, and 'promise' "
             "says that there is none.",
             &numpy::take),
    function(
        "numpy", "take_along_axis(arr, indices, axis=-1, mode=None, fill_value=None)",
        "Elements at indices along an axis, of which each row has its own; other axes broadcast. "
        "mode is as in take.",
        &numpy::take_along_axis),
    function("numpy", "compress(condition, a, axis=None, *, size=None, fill_value=0, out=None!)",
             "Elements along an axis where the condition, a vector, is true. With size so many, "
             "filled up with fill_value.",
             &numpy::compress),
    function("numpy", "select(condlist, choicelist, default=0)",
             "The choice of the first condition that is true, or the default.", &numpy::select),
    function("numpy", "nonzero(a, *, size=None, fill_value=0)",
             "The indices of elements that are not 0, an array for each axis, int32. With size so "
             "many, filled up with fill_value, a number or one for each axis; under jit without it "
             "their number, a size of the program, depends on the values.",
             &nonzero_of),
    function("numpy", "flatnonzero(a, *, size=None, fill_value=0)",
             "nonzero of the elements in a row.", &numpy::flatnonzero),
    function("numpy", "argwhere(a, *, size=None, fill_value=0)", "nonzero as rows of indices.",
             &argwhere_of),
    function(
        "numpy",
        "unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, "
        "equal_nan=True, size=None, fill_value=None)",
        "Distinct elements in order; with the index of the first of each, the place of each "
        "element among them, how many of "
        "each. With an axis distinct slices along it. NaN are one kind unless equal_nan is False. "
        "size is as in nonzero.",
        &unique_of),
    function("numpy", "unique_all(x, *, size=None, fill_value=None)",
             "(values, indices, inverse_indices, counts) of unique, where NaN are distinct.",
             &unique_all_of),
    function("numpy", "unique_counts(x, *, size=None, fill_value=None)",
             "(values, counts) of unique, where NaN are distinct.", &unique_counts_of),
    function("numpy", "unique_inverse(x, *, size=None, fill_value=None)",
             "(values, inverse_indices) of unique, where NaN are distinct.", &unique_inverse_of),
    function("numpy", "unique_values(x, *, size=None, fill_value=None)",
             "Distinct elements in order, where NaN are distinct.", &unique_values_of),
    function("numpy", "unravel_index(indices, shape)",
             "Places in a row as indices of each axis. IndexError for known ones outside.",
             &numpy::unravel_index),
    function("numpy",
             "isin(element, test_elements, assume_unique=False!, invert=False, *, method='auto'!)",
             "Whether each element is among others, by sorting them.", &numpy::isin),
};

}  // namespace
}  // namespace plait
