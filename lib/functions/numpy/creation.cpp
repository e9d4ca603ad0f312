// plait.numpy: arrays from sizes and numbers, triangles and diagonals.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/narrow.h>
#include <plait/trace/concrete.h>
#include <plait/trace/devices.h>

#include <cmath>

#include "functions/functions.h"
#include "functions/numpy/known_values.h"
#include "functions/one_program.h"
#include "primitives/linalg/places.h"

namespace plait {
using namespace functions;  // NOLINT

// The array with dense memory of its own, where its value is known: a broadcast element would be
// copied by every program that takes it.
static Array own(const Array& array) {
  if (!array.is_concrete() || array.buffer().placed().is_dense()) return array;
  return Array(array.buffer().dense());
}
static void require_sizes(const Shape& shape, std::string_view function) {
  for (Dim size : shape)
    if (size.is_constant() && size.constant() < 0)
      throw ShapeError(
          std::string(function) + ": the shape (" + shape.to_string() + ") has a negative size",
          "give sizes >= 0");
}
// Whether a shape needs none of the checks of lax::full.
static bool is_ordinary(const Shape& shape) {
  constexpr int few = 8;
  constexpr std::int64_t most = std::int64_t(1) << 36;
  if (!shape.is_constant() || shape.rank() > few) return false;
  std::int64_t count = 1;
  for (Dim size : shape) {
    const std::int64_t n = std::max<std::int64_t>(1, size.constant());
    if (n > most / count) return false;
    count *= n;
  }
  return true;
}
// One element as all of a shape.
static View repeated(View number, const Shape& shape) {
  number.shape = shape.to_sizes();
  number.strides = Sizes64(number.shape.size(), 0);
  return number;
}
static Array filled(const Shape& shape, double value, DType dtype, std::string_view function) {
  require_sizes(shape, function);
  if (Trace::current() || !DeviceScope::current().is_host() || !is_ordinary(shape))
    return own(lax::full(shape, value, dtype));
  const Buffer number = Array::literal(value, dtype).buffer();
  Buffer made = Buffer::copy_of(repeated(number.view(), shape));
  made.set_free(true);
  return make_concrete({shape, dtype, false}, std::move(made));
}

static Array filled_like(const Array& a, double value, std::optional<DType> dtype,
                         const std::optional<Shape>& shape, std::string_view function) {
  const DeviceScope scope(device_of(a));
  const Array made = filled(shape.value_or(a.shape()), value, dtype.value_or(a.dtype()), function);
  return dtype ? made : as_weak_as(a, made);
}

Array numpy::zeros(const Shape& shape, OptionalDType dtype) {
  return filled(shape, 0, dtype.value_or(default_float()), "zeros");
}
Array numpy::ones(const Shape& shape, OptionalDType dtype) {
  return filled(shape, 1, dtype.value_or(default_float()), "ones");
}
// Who asks for it writes elsewhere: one zero, shown everywhere, unless it is as quick to have many.
Array numpy::empty(const Shape& shape, OptionalDType dtype) {
  constexpr std::int64_t few = 4096;
  require_sizes(shape, "empty");
  if (shape.is_constant() && shape.num_elements().constant() <= few) return zeros(shape, dtype);
  return lax::full(shape, 0, dtype.value_or(default_float()));
}

Array numpy::full(const Shape& shape, Operand fill_value, OptionalDType dtype) {
  // A Python float becomes float32 here, because an array holds strong numbers.
  const DType to = dtype.value_or(default_dtype(fill_value));
  require_sizes(shape, "full");
  return own(broadcast_to(yielded(fill_value, to, false, "full"), shape));
}

Array numpy::zeros_like(Operand a, OptionalDType dtype, const std::optional<Shape>& shape) {
  return filled_like(a, 0, dtype, shape, "zeros_like");
}
Array numpy::ones_like(Operand a, OptionalDType dtype, const std::optional<Shape>& shape) {
  return filled_like(a, 1, dtype, shape, "ones_like");
}
Array numpy::empty_like(Operand a, OptionalDType dtype, const std::optional<Shape>& shape) {
  const DeviceScope scope(device_of(a));
  const Array made = empty(shape.value_or(a.shape()), dtype.value_or(a.dtype()));
  return dtype ? made : as_weak_as(a, made);
}
Array numpy::full_like(Operand a, Operand fill_value, OptionalDType dtype,
                       const std::optional<Shape>& shape) {
  const Array made = full(shape.value_or(a.shape()), fill_value, dtype.value_or(a.dtype()));
  return dtype ? made : as_weak_as(a, made);
}

// --- Ranges --------------------------------------------------------------------------------------

Array numpy::arange(Number start, std::optional<Number> stop, std::optional<Number> step,
                    OptionalDType dtype) {
  const Number first = stop ? start : Number(0), last = stop ? *stop : start,
               stride = step.value_or(Number(1));
  if (first.is_float() || last.is_float() || stride.is_float()) {
    const double from = first.as_double(), by = stride.as_double(),
                 count = std::ceil((last.as_double() - from) / by);
    if (!(std::abs(count) < 1e15))
      throw ValueError(
          std::isnan(count) ? "arange: an end or the step is NaN" : "arange: over 10^15 elements",
          "give a finite range, and a step that is not 0");
    const DType to = dtype.value_or(default_float());
    const DType compute = is_complex(to) ? to : DType::float64;  // rounded once, at the end
    const Array index = counting(std::int64_t(std::max(count, 0.0)), compute);
    return plait::functions::astype(
        lax::add(lax::mul(index, constant(by, index)), constant(from, index)), to);
  }
  const Dim from = first.dim(), by = stride.dim();
  if (by == Dim(0)) throw ValueError("arange: the step is 0", "give a step that is not 0");
  const Dim count = maximum(0, ceil_divide(last.dim() - from, by));
  DType to = dtype.value_or(default_int());
  auto fits = [](Dim dim) { return !dim.is_constant() || std::abs(dim.constant()) <= INT32_MAX; };
  if (!dtype && !(fits(from) && fits(last.dim()))) to = DType::int64;
  if (is_bool(to)) return plait::functions::astype(arange(from, last, by, default_int()), to);
  Array result = counting(count, to);
  auto literal = [&](Dim dim) {
    return dim.is_constant()
               ? Array::literal(cast(Literal{DType::int64, false, dim.constant(), 0, 0}, to, false))
               : number_of(dim, to);
  };
  if (!(by == Dim(1))) result = lax::mul(result, literal(by));
  if (!(from == Dim(0))) result = lax::add(result, literal(from));
  return result;
}

namespace {

// As many numbers between two arrays of ends as there are along the first axis.
Array numbers_between(const Array& start, const Array& stop, Dim num, bool endpoint, DType to) {
  const DType compute = start.dtype();
  const DType real = real_dtype_of(compute);
  const Dim intervals = endpoint ? num - 1 : num;
  // start (1 - t) + stop t, whose ends are exact.
  const Array index = counting(num, real);
  const Array divisor = lax::max(number_of(intervals, real), Array::literal(1, real));
  Array t = plait::functions::astype(lax::div(index, divisor), compute);
  Shape shape = start.shape();
  shape.insert(0, num);
  std::vector<int> end_dims;
  for (int i = 1; i < shape.rank(); ++i) end_dims.push_back(i);
  t = lax::broadcast_in_dim(t, shape, std::vector<int>{0});
  const Array first =
      lax::broadcast_in_dim(plait::functions::astype(start, compute), shape, end_dims);
  const Array last =
      lax::broadcast_in_dim(plait::functions::astype(stop, compute), shape, end_dims);
  Array result =
      lax::add(lax::mul(first, lax::sub(Array::literal(1, compute), t)), lax::mul(last, t));
  if (endpoint) {
    const Array at_end =
        lax::broadcast_in_dim(lax::bitwise_and(lax::eq(index, number_of(num - 1, real)),
                                               lax::gt(index, Array::literal(0, real))),
                              shape, std::vector<int>{0});
    result = lax::select(at_end, last, result);
  }
  if (is_integer(to) && is_floating(result.dtype())) result = lax::floor(result);
  return plait::functions::astype(result, to);
}

}  // namespace

Array numpy::linspace(Operand start, Operand stop, Dim num, bool endpoint, OptionalDType dtype,
                      int axis) {
  if (less_equal(0, num) == false)
    throw ValueError("linspace: num is " + num.to_string(), "give a count >= 0");
  Arrays ends = promoted_inexact("linspace", {start, stop});
  if (ends[0].ndim() != ends[1].ndim())
    for (Array& end : ends)
      end = plait::broadcast_to(end, ends[0].ndim() ? ends[0].shape() : ends[1].shape());
  const DType to = dtype.value_or(default_dtype(ends[0]));
  constexpr std::int64_t few = 16384;  // of which a program may keep tables
  const Function body = [&](std::span<const Array> x) {
    return Arrays{numbers_between(x[0], x[1], num, endpoint, to)};
  };
  const Params attributes{{"num", num}, {"endpoint", endpoint}, {"dtype", to}};
  const Array numbers = less_equal(num, few) == true
                            ? in_one_program("linspace", ends, attributes, 1, body)
                            : body(ends)[0];
  return moved(numbers, 0, normalize_axis(axis, numbers.ndim(), "linspace"));
}

Array numpy::logspace(Operand start, Operand stop, Dim num, bool endpoint, double base,
                      OptionalDType dtype, int axis) {
  // Exponents in float64 where the ends are Python numbers, so that powers are accurate.
  const bool weak = start.aval().weak && stop.aval().weak && !is_complex(start.dtype()) &&
                    !is_complex(stop.dtype());
  const Array exponents = linspace(start, stop, num, endpoint,
                                   weak ? OptionalDType(DType::float64) : OptionalDType(), axis);
  return plait::functions::astype(lax::pow(constant(base, exponents), exponents),
                                  dtype.value_or(weak ? default_float() : exponents.dtype()));
}

// Through the logarithms of the ends over that of the first, a sign or a direction: an end is exact
// in it. Complex numbers go on a spiral.
Array numpy::geomspace(Operand start, Operand stop, Dim num, bool endpoint, OptionalDType dtype,
                       int axis) {
  const bool weak = start.aval().weak && stop.aval().weak;
  Arrays ends = promoted_inexact("geomspace", {start, stop});
  for (Array& end : ends)
    if (end.ndim() < ends[0].ndim() || end.ndim() < ends[1].ndim())
      end = plait::broadcast_to(end, ends[0].ndim() ? ends[0].shape() : ends[1].shape());
  const bool is_spiral = is_complex(ends[0].dtype());
  const OptionalDType compute =
      weak && !is_spiral ? OptionalDType(DType::float64) : OptionalDType();
  const Array direction = sign(ends[0]);
  auto logarithm = [&](const Array& end) {
    return lax::log(is_spiral ? divide(end, direction) : lax::abs(end));
  };
  const Array powers =
      lax::exp(linspace(logarithm(ends[0]), logarithm(ends[1]), num, endpoint, compute, 0));
  const Array result = multiply(powers, direction);
  const int dim = normalize_axis(axis, result.ndim(), "geomspace");
  return plait::functions::astype(moved(result, 0, dim),
                                  dtype.value_or(weak ? default_float() : result.dtype()));
}

// --- Triangles and diagonals ---------------------------------------------------------------------

namespace {
// row + k compared with column, over the last two axes of a matrix of n by m.
void require_matrix(const Array& x, std::string_view function) {
  if (x.ndim() < 2)
    throw ShapeError(
        std::string(function) + ": an array of shape (" + x.shape().to_string() + ") is no matrix",
        "give an array of at least 2 axes");
}
}  // namespace

namespace {

// The places of diagonal k of a matrix, in a row: so many, from the first one on.
struct DiagonalPlaces {
  std::int64_t first, count;
};
DiagonalPlaces diagonal_places(std::int64_t rows, std::int64_t columns, int k) {
  const std::int64_t row = k < 0 ? -std::int64_t(k) : 0, column = k > 0 ? k : 0;
  return {row * columns + column,
          std::max<std::int64_t>(0, std::min(rows - row, columns - column))};
}

// The matrix with these elements on diagonal k and zeros elsewhere, for eager calls: programs
// compare places, which reads nothing, and holds for named sizes too.
Array on_diagonal(const Aval& element, const View& elements, std::int64_t rows,
                  std::int64_t columns, int k) {
  const auto [first, count] = diagonal_places(rows, columns, k);
  const Buffer zero = Array::literal(0, element.dtype).buffer();
  Buffer made = Buffer::copy_of(repeated(zero.view(), {rows, columns}));
  View places = made.view();
  places.data = places.as<char>() + first * size_of(places.dtype);
  places.shape = {count};
  places.strides = {columns + 1};
  if (count > 0) copy_elements(elements, places);
  return make_concrete({{rows, columns}, element.dtype, element.weak}, std::move(made));
}

}  // namespace

Array numpy::eye(Dim N, std::optional<Dim> M, int k, OptionalDType dtype) {
  const Dim columns = M.value_or(N);
  const DType to = dtype.value_or(default_float());
  if (Trace::current() || !DeviceScope::current().is_host() || !is_ordinary({N, columns}))
    return plait::functions::astype(matrices::compare_places(lax::eq, N, columns, k), to);
  require_sizes({N, columns}, "eye");
  const std::int64_t rows = N.constant();
  const Shape places{diagonal_places(rows, columns.constant(), k).count};
  const Buffer one = Array::literal(1, to).buffer();
  Array made = on_diagonal({{}, to}, repeated(one.view(), places), rows, columns.constant(), k);
  set_free(std::span<const Array>(&made, 1));
  return made;
}
Array numpy::identity(Dim n, OptionalDType dtype) { return eye(n, {}, 0, dtype); }
Array numpy::tri(Dim N, std::optional<Dim> M, int k, OptionalDType dtype) {
  return plait::functions::astype(matrices::compare_places(lax::ge, N, M.value_or(N), k),
                                  dtype.value_or(default_float()));
}
Array numpy::tril(Operand m, int k) {
  require_matrix(m, "tril");
  return matrices::keep_places(
      m, matrices::compare_places(lax::ge, m.shape(m.ndim() - 2), m.shape(m.ndim() - 1), k));
}
Array numpy::triu(Operand m, int k) {
  require_matrix(m, "triu");
  return matrices::keep_places(
      m, matrices::compare_places(lax::le, m.shape(m.ndim() - 2), m.shape(m.ndim() - 1), k));
}

Array numpy::diag(Operand v, int k) {
  if (v.ndim() == 2) return diagonal(v, k);
  if (v.ndim() != 1)
    throw ShapeError("diag: an array of " + std::to_string(v.ndim()) + " axes",
                     "give a vector or a matrix");
  const int below = std::abs(k);
  if (is_known(v)) {
    const std::int64_t n = v.shape(0).constant() + below;
    const Buffer elements = v.buffer();
    const Array made = on_diagonal(v.aval(), elements.view(), n, n, k);
    if (elements.is_free()) set_free(std::span<const Array>(&made, 1));
    return made;
  }
  const Array padded =
      k == 0 ? Array(v) : lax::pad(v, constant(0, v), {{k > 0 ? below : 0, k > 0 ? 0 : below, 0}});
  const Dim n = padded.shape(0);
  // Column j of diagonal k holds v[j - k], or v[j] below the main diagonal.
  const Array columns = lax::broadcast_in_dim(padded, Shape{n, n}, std::vector<int>{1});
  return matrices::keep_places(columns, matrices::compare_places(lax::eq, n, n, k));
}
Array numpy::diagflat(Operand v, int k) { return diag(raveled(v), k); }

Array numpy::diagonal(Operand a, int offset, int axis1, int axis2) {
  require_matrix(a, "diagonal");
  const int first = normalize_axis(axis1, a.ndim(), "diagonal"),
            second = normalize_axis(axis2, a.ndim(), "diagonal");
  if (first == second)
    throw ValueError("diagonal: axis1 and axis2 are the same axis", "name two axes");
  const int rank = a.ndim();
  Array x = moveaxis(a, {first, second}, {-2, -1});
  const Dim rows = x.shape(rank - 2), columns = x.shape(rank - 1);
  const Dim row = offset < 0 ? -offset : 0, column = offset > 0 ? offset : 0;
  const Dim size = maximum(0, minimum(rows - row, columns - column));
  if (!size.is_constant()) {  // a named size: one element of each row
    const Array picked =
        matrices::keep_places(x, matrices::compare_places(lax::eq, rows, columns, offset));
    const Array all_rows = lax::reduce_sum(picked, std::vector<int>{rank - 1});
    return part(all_rows, rank - 2, row, row + size);
  }
  if (size == Dim(0)) {
    Shape empty = x.shape();
    empty.pop_back();
    empty.back() = 0;
    return lax::full(empty, 0, x.dtype());
  }
  // In a flattened square the diagonal is every (size + 1)th element.
  x = part(part(x, rank - 2, row, row + size), rank - 1, column, column + size);
  Shape row_shape = x.shape();
  row_shape.pop_back();
  row_shape.back() = size * size;
  return part(lax::reshape(x, row_shape), rank - 2, 0, size * size, size + 1);
}

Array numpy::trace(Operand a, int offset, int axis1, int axis2, OptionalDType dtype) {
  return sum(diagonal(a, offset, axis1, axis2), -1, dtype);
}

// --- Grids ---------------------------------------------------------------------------------------

std::vector<Array> numpy::meshgrid(Operands xi, bool sparse, const std::string& indexing) {
  if (indexing != "xy" && indexing != "ij")
    throw ValueError("meshgrid: indexing is '" + indexing + "'", "choose 'xy' or 'ij'");
  const int rank = int(xi.size());
  auto place = [&](int i) { return indexing == "xy" && rank > 1 && i < 2 ? 1 - i : i; };
  Shape shape(rank, 1);
  for (int i = 0; i < rank; ++i) shape[place(i)] = xi[i].shape().num_elements();
  std::vector<Array> grids;
  for (int i = 0; i < rank; ++i) {
    Shape own(rank, 1);
    own[place(i)] = shape[place(i)];
    grids.push_back(
        lax::broadcast_in_dim(raveled(xi[i]), sparse ? own : shape, std::vector<int>{place(i)}));
  }
  return grids;
}

Array numpy::indices(const Shape& dimensions, std::optional<DType> dtype) {
  Arrays grids;
  for (int axis = 0; axis < dimensions.rank(); ++axis)
    grids.push_back(lax::iota(dtype.value_or(default_int()), dimensions, axis));
  return stack(grids, 0);
}

namespace {
std::vector<Array> places_where(const Array& keep, Dim count) {
  return is_known(keep) ? numpy::nonzero(keep) : numpy::nonzero(keep, count);
}
// The number of positions of an n by m matrix on or below diagonal k.
std::int64_t count_below(std::int64_t n, std::int64_t m, std::int64_t k) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) count += std::clamp<std::int64_t>(i + k + 1, 0, m);
  return count;
}
}  // namespace
std::vector<Array> numpy::tril_indices(Dim n, int k, std::optional<Dim> m) {
  const Dim columns = m.value_or(n);
  return places_where(matrices::compare_places(lax::ge, n, columns, k),
                      count_below(n.constant(), columns.constant(), k));
}
std::vector<Array> numpy::triu_indices(Dim n, int k, std::optional<Dim> m) {
  const Dim columns = m.value_or(n);
  return places_where(matrices::compare_places(lax::le, n, columns, k),
                      n * columns - count_below(n.constant(), columns.constant(), k - 1));
}

Array numpy::astype(Operand x, DType dtype) { return lax::convert_element_type(x, dtype); }
Array numpy::copy(Operand a) {
  // In row-major order, so that strided memory can be viewed as a span.
  if (!a.is_valid() || !a.node()->is_plain() || a.buffer().placed().is_dense()) return a;
  return Array(a.buffer().copy(), a.aval().weak);
}

// --- Windows -------------------------------------------------------------------------------------

namespace {
// a0 - a1 cos(2 pi i / (M - 1)) + a2 cos(4 pi i / (M - 1)).
Array cosine_window(Dim M, double a0, double a1, double a2) {
  const Array i = counting(M, DType::float64);
  const Array angle =
      lax::div(lax::mul(i, Array::literal(2 * M_PI, DType::float64)),
               lax::max(number_of(M - 1, DType::float64), Array::literal(1, DType::float64)));
  Array w = a0 - lax::cos(angle) * a1;
  if (a2 != 0) w = w + lax::cos(angle * 2.0) * a2;
  if (M == Dim(1)) w = lax::full({1}, 1, DType::float64);
  return astype(w, default_float());
}
}  // namespace
Array numpy::hamming(Dim M) { return cosine_window(M, 0.54, 0.46, 0); }
Array numpy::hanning(Dim M) { return cosine_window(M, 0.5, 0.5, 0); }
Array numpy::blackman(Dim M) { return cosine_window(M, 0.42, 0.5, 0.08); }
Array numpy::bartlett(Dim M) {
  const Array i = counting(M, default_float());
  const Array last =
      lax::max(number_of(M - 1, default_float()), Array::literal(1, default_float()));
  return M == Dim(1) ? lax::full({1}, 1, default_float())
                     : Array(1.0 - lax::abs(i * 2.0 / last - 1.0));
}

namespace {

// The step is that of the exact numbers, and NaN where there is only one number.
Argument linspace_of(Operand start, Operand stop, Dim num, bool endpoint, bool retstep,
                     std::optional<DType> dtype, int axis) {
  const Array numbers = numpy::linspace(start, stop, num, endpoint, dtype, axis);
  if (!retstep) return detail::give(numbers);
  const Arrays ends = promoted_inexact("linspace", {start, stop});
  const Array span = numpy::subtract(ends[1], ends[0]);
  const Dim intervals = endpoint ? num - 1 : num;
  const Array step = less_equal(1, intervals) == false
                         ? constant(NAN, span)
                         : numpy::divide(span, number_of(intervals, span.dtype()));
  return detail::give(std::pair(numbers, step));
}

using Wide = __int128;

// A number of arange, and its value where it is an integer: sizes have 62 bits, and uint64 has 64.
struct RangeNumber {
  static constexpr const char* argument_type = "number";
  static std::optional<RangeNumber> from_argument(const Argument& argument) {
    constexpr std::int64_t limit = std::int64_t(1) << 61;
    if (const auto* array = std::get_if<Array>(&argument.value);
        array && array->ndim() == 0 && array->dtype() == DType::uint64 && array->known_buffer())
      if (const auto bits = std::uint64_t(array->item<std::int64_t>());
          bits >= std::uint64_t(limit))
        return RangeNumber{0, Wide(bits), true};
    if (const std::optional<std::int64_t> integer = detail::as_integer(argument)) {
      if (*integer < -limit || *integer > limit) return RangeNumber{0, Wide(*integer), true};
      return RangeNumber{*integer, Wide(*integer), false};
    }
    std::optional<Number> number = Number::from_argument(argument);
    return number ? std::optional(RangeNumber{*number, std::nullopt, false}) : std::nullopt;
  }
  Number number;
  std::optional<Wide> integer;
  bool is_wide = false;
};

// arange of integers of which one is no size.
Array wide_arange(Wide start, Wide stop, Wide step, std::optional<DType> dtype) {
  if (step == 0) throw ValueError("arange: the step is 0", "give a step that is not 0");
  const Wide span = step > 0 ? stop - start : start - stop, stride = step > 0 ? step : -step;
  const Wide count = span > 0 ? (span + stride - 1) / stride : 0;
  if (count > INT64_MAX / 4)
    throw ShapeError("arange: more than 2^61 elements", "give a shorter range");
  auto fits = [](Wide number, int bits) {
    return number >= -(Wide(1) << bits) && number < (Wide(1) << bits);
  };
  auto all_fit = [&](int bits) { return fits(start, bits) && fits(stop, bits); };
  const DType to = dtype         ? *dtype
                   : all_fit(31) ? default_int()
                   : all_fit(63) ? DType::int64
                                 : DType::uint64;
  // Modulo 2^64, which is exact where the dtype holds the numbers.
  auto literal = [](Wide number) {
    return Array::literal(Literal{DType::uint64, false, std::int64_t(number), 0, 0});
  };
  const Array index = counting(Dim(std::int64_t(count)), DType::uint64);
  const Array numbers = lax::add(lax::mul(index, literal(step)), literal(start));
  return plait::functions::astype(lax::bitcast_convert_type(numbers, DType::int64), to);
}

Array arange_of(const RangeNumber& start, const std::optional<RangeNumber>& stop,
                const std::optional<RangeNumber>& step, std::optional<DType> dtype) {
  auto number = [](const std::optional<RangeNumber>& given) {
    return given ? std::optional(given->number) : std::nullopt;
  };
  const bool is_wide = start.is_wide || (stop && stop->is_wide) || (step && step->is_wide);
  if (!is_wide) return numpy::arange(start.number, number(stop), number(step), dtype);
  const std::optional<Wide> first = stop ? start.integer : Wide(0),
                            last = stop ? stop->integer : start.integer,
                            stride = step ? step->integer : Wide(1);
  if (first && last && stride && !(dtype && is_inexact(*dtype)))
    return wide_arange(*first, *last, *stride, dtype);
  auto real = [](const RangeNumber& given) {
    return Number(given.integer ? double(*given.integer) : given.number.as_double());
  };
  return numpy::arange(real(start), stop ? std::optional(real(*stop)) : std::nullopt,
                       step ? std::optional(real(*step)) : std::nullopt, dtype);
}

// Diagonals beyond every matrix are all alike.
int diagonal_number(std::int64_t k) {
  return int(std::clamp<std::int64_t>(k, -(1 << 30), 1 << 30));
}

// The places that compare rows and columns from a diagonal, which may be known at run time alone.
Array diagonal_places(Array (*compare)(Operand, Operand), Dim rows, Dim columns, const Argument& k,
                      std::optional<DType> dtype, std::string_view function) {
  const DType to = dtype.value_or(default_float());
  if (const std::optional<std::int64_t> number = detail::as_integer(k))
    return astype(matrices::compare_places(compare, rows, columns, diagonal_number(*number)), to);
  const std::optional<Array> diagonal = detail::as_array(k);
  if (!diagonal || diagonal->ndim() != 0 || !is_integer(diagonal->dtype()))
    throw DtypeError(std::string(function) + ": argument 'k' is no integer",
                     "give the number of a diagonal");
  const Array row = lax::add(counting(rows, DType::int32), astype(*diagonal, DType::int32));
  const Shape shape{rows, columns};
  return astype(compare(lax::broadcast_in_dim(row, shape, std::vector<int>{0}),
                        lax::iota(DType::int32, shape, 1)),
                to);
}

[[maybe_unused]] const FunctionInfo* const creation_functions[] = {
    function("numpy", "zeros(shape, dtype=None, *, device=None!)",
             "Zeros of a shape, float32 unless dtype says otherwise.", &numpy::zeros),
    function("numpy", "ones(shape, dtype=None, *, device=None!)",
             "Ones of a shape, float32 unless dtype says otherwise.", &numpy::ones),
    function("numpy", "empty(shape, dtype=None, *, device=None!)",
             "The same as zeros: arrays cannot be written to.", &numpy::empty),
    function("numpy", "full(shape, fill_value, dtype=None, *, device=None!)",
             "fill_value broadcast to a shape, in its own dtype unless dtype is given.",
             &numpy::full),
    function("numpy", "zeros_like(a, dtype=None, shape=None, *, device=None!)",
             "Zeros of a's shape and dtype.", &numpy::zeros_like),
    function("numpy", "ones_like(a, dtype=None, shape=None, *, device=None!)",
             "Ones of a's shape and dtype.", &numpy::ones_like),
    function("numpy", "empty_like(a, dtype=None, shape=None, *, device=None!)",
             "The same as zeros_like.", &numpy::empty_like),
    function("numpy", "full_like(a, fill_value, dtype=None, shape=None, *, device=None!)",
             "fill_value broadcast to a's shape, in its dtype.", &numpy::full_like),
    function("numpy", "arange(start, stop=None, step=None, dtype=None, *, device=None!)",
             "start, start + step, ... below stop; arange(n) starts at 0. int32 for integers and "
             "sizes, float32 when any is a float. "
             "The numbers must be known, or named sizes.",
             &arange_of),
    function("numpy",
             "linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, "
             "device=None!)",
             "num numbers from start to stop, evenly spaced, along a new axis; stop itself is last "
             "unless endpoint is False. With retstep, also the step between them.",
             &linspace_of),
    function("numpy", "logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0)",
             "base to the powers linspace(start, stop, num).", &numpy::logspace),
    function("numpy", "geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0)",
             "num numbers from start to stop, each the last times a constant.", &numpy::geomspace),
    function(
        "numpy", "eye(N, M=None, k=0, dtype=None, *, device=None!)",
        "An N by M matrix with ones on diagonal k.",
        +[](Dim N, std::optional<Dim> M, const Argument& k, std::optional<DType> dtype) {
          if (const std::optional<std::int64_t> number = detail::as_integer(k))
            return numpy::eye(N, M, diagonal_number(*number), dtype);
          return diagonal_places(lax::eq, N, M.value_or(N), k, dtype, "eye");
        }),
    function("numpy", "identity(n, dtype=None)",
             "The n by n identity matrix, float32 unless dtype says otherwise.", &numpy::identity),
    function(
        "numpy", "tri(N, M=None, k=0, dtype=None)",
        "An N by M matrix with ones on and below diagonal k.",
        +[](Dim N, std::optional<Dim> M, const Argument& k, std::optional<DType> dtype) {
          return diagonal_places(lax::ge, N, M.value_or(N), k, dtype, "tri");
        }),
    function(
        "numpy", "tril(m, k=0)", "m with zeros above diagonal k of its last two axes.",
        +[](Operand m, std::int64_t k) { return numpy::tril(m, diagonal_number(k)); }),
    function(
        "numpy", "triu(m, k=0)", "m with zeros below diagonal k of its last two axes.",
        +[](Operand m, std::int64_t k) { return numpy::triu(m, diagonal_number(k)); }),
    function("numpy", "diag(v, k=0)",
             "The matrix with v on diagonal k, or diagonal k of the matrix v.", &numpy::diag),
    function("numpy", "diagflat(v, k=0)",
             "The matrix with the elements of v in a row on diagonal k.", &numpy::diagflat),
    function("numpy", "diagonal(a, offset=0, axis1=0, axis2=1)",
             "A diagonal of two axes, which a last axis replaces.", &numpy::diagonal),
    function("numpy", "trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None!)",
             "The sum of a diagonal of two axes.", &numpy::trace),
    function("numpy", "meshgrid(*xi, copy=True!, sparse=False, indexing='xy')",
             "Vectors broadcast against each other, a list of arrays: with 'xy' the first varies "
             "along axis 1.",
             &numpy::meshgrid),
    function("numpy", "tril_indices(n, k=0, m=None)",
             "Rows and columns of the places on and below diagonal k.", &numpy::tril_indices),
    function("numpy", "triu_indices(n, k=0, m=None)",
             "Rows and columns of the places on and above diagonal k.", &numpy::triu_indices),
    function("numpy", "astype(x, dtype, *, copy=False!, device=None!)",
             "x in another dtype: floats truncate to integers and saturate.", &numpy::astype),
    function("numpy", "copy(a, order=None!)",
             "The value of a, which writing to a in Python leaves as it is.", &numpy::copy),
    function("numpy", "hamming(M)", "The Hamming window of M points.", &numpy::hamming),
    function("numpy", "hanning(M)", "The Hann window of M points.", &numpy::hanning),
    function("numpy", "blackman(M)", "The Blackman window of M points.", &numpy::blackman),
    function("numpy", "bartlett(M)", "The triangular window of M points.", &numpy::bartlett),
};

}  // namespace
}  // namespace plait
