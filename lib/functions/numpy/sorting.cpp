// plait.numpy: order, quantiles, counts, interpolation.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/narrow.h>
#include <plait/primitives/order_statistics.h>
#include <plait/trace/data_sizes.h>

#include <bit>
#include <cmath>

#include "functions/functions.h"
#include "functions/known_numbers.h"
#include "functions/one_program.h"

namespace plait {
using namespace functions;  // NOLINT

Array numpy::sort(Operand a, std::optional<int> axis, bool stable, bool descending) {
  const Array x = axis ? Array(a) : raveled(a);
  return lax::sort(x, normalize_axis(axis.value_or(0), x.ndim(), "sort"), stable, descending);
}

Array numpy::argsort(Operand a, std::optional<int> axis, bool stable, bool descending) {
  const Array x = axis ? Array(a) : raveled(a);
  const int dim = normalize_axis(axis.value_or(0), x.ndim(), "argsort");
  return lax::sort(Operands{x, lax::iota(default_int(), x.shape(), dim)}, dim, stable, 1,
                   descending)[1];
}

Array numpy::lexsort(Operands keys, int axis) {
  if (keys.empty()) throw ValueError("lexsort: no keys", "give at least one");
  Arrays operands(keys.rbegin(), keys.rend());
  const int dim = normalize_axis(axis, operands[0].ndim(), "lexsort");
  operands.push_back(lax::iota(default_int(), operands[0].shape(), dim));
  return lax::sort(Operands(operands), dim, true, int(keys.size())).back();
}

// --- Search --------------------------------------------------------------------------------------

namespace {
// x < y in the order of sort, where NaN is greatest.
Array sorts_before(const Array& x, const Array& y) {
  const Array less = lax::lt(x, y);
  if (!is_inexact(x.dtype())) return less;
  return lax::bitwise_or(less, lax::bitwise_and(lax::eq(x, x), lax::ne(y, y)));
}

// How many elements come before each value: bit by bit, the highest first, as many as the number
// has that would count all.
Array bisect(const Array& sorted, const Array& values, const std::string& side) {
  const Dim n = sorted.shape(0);
  const Shape& shape = values.shape();
  const int bits = n.is_constant() ? std::bit_width(std::uint64_t(n.constant())) : 31;
  const auto mode =
      n.is_constant() ? lax::GatherScatterMode::promise : lax::GatherScatterMode::clip;
  Shape rows = shape;
  rows.push_back(1);
  Array count = lax::full(shape, 0, default_int());
  const Array all = plait::broadcast_to(number_of(n, default_int()), shape),
              one = constant(1, count);
  for (int bit = bits; bit-- > 0;) {
    const Array more = lax::add(count, constant(double(std::int64_t{1} << bit), count));
    const Array last = lax::sub(lax::min(more, all), one);
    const Array value =
        lax::gather(sorted, lax::reshape(last, rows), {{0}, {0}, 0}, {1}, mode, std::nullopt);
    const Array comes_before = side == "left" ? sorts_before(value, values)
                                              : lax::bitwise_not(sorts_before(values, value));
    count = lax::select(lax::bitwise_and(comes_before, lax::le(more, all)), more, count);
  }
  return count;
}
}  // namespace

Array numpy::searchsorted(Operand a, Operand v, const std::string& side,
                          const OptionalArray& sorter) {
  if (side != "left" && side != "right")
    throw ValueError("searchsorted: side is '" + side + "'", "choose 'left' or 'right'");
  if (a.ndim() != 1)
    throw ShapeError("searchsorted: a sorted array of shape (" + a.shape().to_string() + ")",
                     "give a vector");
  Arrays x{sorter ? take(a, *sorter, 0) : Array(a), v};
  promote_dtypes(x, "searchsorted");
  if (a.shape(0) == Dim(0)) return lax::full(v.shape(), 0, default_int());
  return in_one_program(
      "searchsorted", x, {{"side", side}}, v.shape().num_elements(),
      [&](std::span<const Array> inputs) { return Arrays{bisect(inputs[0], inputs[1], side)}; });
}

Array numpy::digitize(Operand x, Operand bins, bool right) {
  const char* const side = right ? "left" : "right";
  const Array rising = searchsorted(bins, x, side);
  if (!may_rise(bins) && !may_rise(bins, std::greater<>()))
    throw ValueError("digitize: the bins neither rise nor fall", "sort them");
  if (bins.ndim() != 1 || less_equal(bins.shape(0), 1) != false) return rising;
  // Descending bins are ascending ones reversed.
  const Array first = lax::index_in_dim(bins, 0, 0, false),
              last = lax::index_in_dim(bins, -1, 0, false);
  const Array falls = lax::lt(last, first);
  if (falls.known_buffer() && !falls.item<bool>()) return rising;
  const Array from_end = searchsorted(lax::rev(bins, std::vector<int>{0}), x, side);
  const Array falling = lax::sub(number_of(bins.shape(0), from_end.dtype()), from_end);
  return lax::select(falls, falling, rising);
}

namespace {
Array interpolated(const Array& x, const Array& xp, const Array& fp,
                   const std::optional<Array>& left, const std::optional<Array>& right) {
  Arrays points{x, xp};
  promote_dtypes(points, "interp");
  for (Array& array : points) array = floating_only("interp", array);
  const Array &at = points[0], &grid = points[1], values = to_inexact(fp);
  const Dim n = xp.shape(0);
  const Array last = number_of(n - 1, default_int()),
              place = numpy::searchsorted(grid, at, "right");
  const Array upper = lax::min(lax::max(place, Array::literal(1, default_int())), last);
  const Array lower =
      lax::max(lax::sub(upper, Array::literal(1, default_int())), Array::literal(0, default_int()));
  auto pick = [&](const Array& from, const Array& index) {
    return numpy::take(from, index, 0, "clip");
  };
  const Array x0 = pick(grid, lower), dx = lax::sub(pick(grid, upper), x0),
              f0 = pick(values, lower);
  const Array df = numpy::subtract(pick(values, upper), f0), flat = lax::eq(dx, constant(0, dx));
  const Array t = lax::div(lax::sub(at, x0), lax::select(flat, filled(1, dx), dx));
  Array result = numpy::where(flat, f0, numpy::add(f0, numpy::multiply(t, df)));
  const Array first = lax::index_in_dim(grid, 0, 0, false),
              end = lax::index_in_dim(grid, -1, 0, false);
  result = numpy::where(numpy::less(at, first),
                        left ? *left : lax::index_in_dim(values, 0, 0, false), result);
  return numpy::where(numpy::greater(at, end),
                      right ? *right : lax::index_in_dim(values, -1, 0, false), result);
}
}  // namespace

Array numpy::interp(Operand x, Operand xp, Operand fp, const OptionalArray& left,
                    const OptionalArray& right) {
  if (xp.ndim() != 1 || !(xp.shape() == fp.shape()) || xp.shape(0) == Dim(0))
    throw ShapeError("interp: points of shapes (" + xp.shape().to_string() + ") and (" +
                         fp.shape().to_string() + ")",
                     "give two vectors of equal size, of at least one element");
  Arrays inputs{x, xp, fp};
  if (left) inputs.push_back(*left);
  if (right) inputs.push_back(*right);
  const Params attributes{{"left", left.has_value()}, {"right", right.has_value()}};
  return in_one_program("interp", inputs, attributes, x.shape().num_elements(),
                        [has_left = left.has_value()](std::span<const Array> inputs) {
                          OptionalArray left, right;
                          if (has_left) left = inputs[3];
                          if (inputs.size() > std::size_t(has_left ? 4 : 3)) right = inputs.back();
                          return Arrays{interpolated(inputs[0], inputs[1], inputs[2], left, right)};
                        });
}

// --- Quantiles -----------------------------------------------------------------------------------

namespace {

enum class NanRows { propagate, ignore };

// The reduced axes flattened to the last one.
Array rows_over(const Array& a, const std::vector<int>& axes) {
  std::vector<int> order;
  Shape shape;
  for (int i = 0; i < a.ndim(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end())
      order.push_back(i), shape.push_back(a.shape(i));
  order.insert(order.end(), axes.begin(), axes.end());
  shape.push_back(size_of_axes(a.shape(), axes));
  return lax::reshape(lax::transpose(a, order), shape);
}

// The elements of rows that lie at some places after sorting. Where all places are known, they are
// selected, else rows are sorted.
class SortedRows {
 public:
  using Places = std::vector<std::int64_t>;
  // known: the places below and above each of several quantiles.
  struct Known {
    Places below, above;
  };
  SortedRows(const Array& rows, const std::optional<Known>& known)
      : known_(known.has_value()), axis_(rows.ndim() - 1), size_(rows.shape(axis_)) {
    if (known_) {
      places_ = known->below;
      places_.insert(places_.end(), known->above.begin(), known->above.end());
      places_.push_back(size_.constant() - 1);
      std::ranges::sort(places_);
      places_.erase(std::unique(places_.begin(), places_.end()), places_.end());
    }
    values_ = known_ ? lax::order_statistics(rows, places_, axis_) : lax::sort(rows, axis_);
  }
  Array at(const Array& index, const Places* places) const {
    if (!known_)
      return numpy::take_along_axis(values_, astype(index, default_int()), axis_, "clip");
    Arrays parts;
    for (const std::int64_t place : *places) parts.push_back(value(place));
    return parts.size() == 1 ? parts[0] : lax::concatenate(parts, axis_);
  }
  Array last() const {
    return known_ ? value(size_.constant() - 1) : part(values_, axis_, size_ - 1, size_);
  }

 private:
  Array value(std::int64_t place) const {
    const std::int64_t index = std::ranges::lower_bound(places_, place) - places_.begin();
    return part(values_, axis_, index, index + 1);
  }

  bool known_;
  int axis_;
  Dim size_;
  Places places_;
  Array values_;
};

// Quantiles are parts of one, or of a hundred.
enum class PartsOf { one, hundred };

// Which quantiles are wanted, as an argument: the numbers of a list keep their 64 bits.
struct QuantileParts {
  static constexpr const char* argument_type = "array";
  static std::optional<QuantileParts> from_argument(const Argument& argument);
  Array array;
};

std::optional<QuantileParts> QuantileParts::from_argument(const Argument& argument) {
  if (std::optional<Array> array = detail::as_array(argument)) return QuantileParts{*array};
  const auto* list = std::get_if<Argument::List>(&argument.value);
  if (!list) return std::nullopt;
  if (list->empty()) return QuantileParts{lax::full({0}, 0, DType::float64)};
  Arrays rows;
  for (const Argument& part : *list) {
    const std::optional<QuantileParts> row = from_argument(part);
    if (!row) return std::nullopt;
    rows.push_back(astype(row->array, DType::float64));
  }
  return QuantileParts{numpy::stack(rows)};
}

void require_parts(std::string_view function, const Array& q, PartsOf parts_of) {
  const double most = parts_of == PartsOf::one ? 1 : 100;
  if (any_known<double>(q, [&](double part) { return !(part >= 0 && part <= most); }))
    throw ValueError(
        std::string(function) + ": a part in q is not from 0 to " + (most == 1 ? "1" : "100"),
        most == 1 ? "give parts of one, or use percentile" : "give percents");
}

// Where the quantiles of n elements lie, if they are known and few.
std::optional<SortedRows::Known> known_places(const Array& q, PartsOf parts_of, const Dim& n) {
  constexpr std::int64_t few = 32;
  const std::optional<std::vector<double>> parts = known_numbers<double>(q);
  if (!parts || !n.is_constant() || parts->empty() || std::int64_t(parts->size()) > few)
    return std::nullopt;
  SortedRows::Known known;
  const auto highest = double(n.constant() - 1);
  for (const double part : *parts) {
    const double place = (parts_of == PartsOf::one ? part : part / 100) * highest;
    known.below.push_back(std::int64_t(std::floor(place)));
    known.above.push_back(std::int64_t(std::ceil(place)));
  }
  return known;
}

// Hyndman and Fan, 1996: the part q lies at n q + alpha + q (1 - alpha - beta) - 1, counted from 0.
struct Positions {
  const char* method;
  double alpha, beta;
};
constexpr Positions positions[] = {{"hazen", 0.5, 0.5},
                                   {"weibull", 0, 0},
                                   {"median_unbiased", 1.0 / 3, 1.0 / 3},
                                   {"normal_unbiased", 3.0 / 8, 3.0 / 8},
                                   {"interpolated_inverted_cdf", 0, 1}};
// The place of q among sorted elements of which the last is number highest, for "linear" to
// interpolate there; nothing for an unknown method.
std::optional<Array> place_by_method(const std::string& method, const Array& q,
                                     const Array& highest) {
  const Array zero = constant(0, q);
  auto inside = [&](const Array& place) {
    return numpy::minimum(numpy::maximum(place, zero), highest);
  };
  const Array n = numpy::add(highest, 1), from_zero = numpy::subtract(numpy::multiply(n, q), 1);
  for (const Positions& of : positions)
    if (method == of.method) return inside(from_zero + of.alpha + q * (1 - of.alpha - of.beta));
  if (method == "inverted_cdf") return inside(lax::ceil(from_zero));
  if (method == "averaged_inverted_cdf")
    return inside(numpy::where(numpy::equal(from_zero, lax::floor(from_zero)), from_zero + 0.5,
                               lax::ceil(from_zero)));
  if (method == "closest_observation") {  // of two that are equally close the even one from 1
    const Array index = from_zero - 0.5, below = lax::floor(index);
    const Array stays =
        numpy::logical_and(numpy::equal(index, below), numpy::equal(numpy::remainder(below, 2), 1));
    return inside(numpy::where(stays, below, below + 1.0));
  }
  return std::nullopt;
}

Array quantiles(std::string_view function, const Array& a, const Array& q, PartsOf parts_of,
                const Axes& axis, const std::string& method, bool keepdims, NanRows nan_rows) {
  require_parts(function, q, parts_of);
  const Array x = floating_only(function, a);
  const std::vector<int> axes = axis.of(x.ndim(), function);
  const Array rows = rows_over(x, axes);
  const int last = rows.ndim() - 1;
  const Dim n = rows.shape(last);
  if (n == Dim(0))
    throw ValueError(std::string(function) + ": of no elements", "give at least one");
  // Positions among the sorted elements, in float64: [..., q].
  Array wanted = raveled(astype(q, DType::float64));
  if (parts_of == PartsOf::hundred) wanted = lax::div(wanted, constant(100, wanted));
  Shape spread(rows.shape().begin(), rows.shape().end() - 1);
  spread.push_back(wanted.shape(0));
  Array highest = number_of(n - 1, DType::float64);
  const bool may_select =
      nan_rows == NanRows::propagate &&
      (method == "linear" || method == "lower" || method == "higher" || method == "midpoint");
  const std::optional<SortedRows::Known> known =
      may_select ? known_places(q, parts_of, n) : std::nullopt;
  const SortedRows sorted(rows, known);
  if (nan_rows == NanRows::ignore) {
    const Array count =
        lax::reduce_sum(astype(lax::eq(rows, rows), default_int()), std::vector<int>{last});
    const Array top = lax::max(lax::sub(count, Array::literal(1, default_int())),
                               Array::literal(0, default_int()));
    std::vector<int> leading;
    for (int i = 0; i < last; ++i) leading.push_back(i);
    highest = lax::broadcast_in_dim(astype(top, DType::float64), spread, leading);
  }
  const Array parts = plait::broadcast_to(wanted, spread);
  const std::optional<Array> by_method = place_by_method(method, parts, highest);
  const Array place = by_method ? *by_method : lax::mul(parts, highest);
  auto below_place = [&] { return sorted.at(lax::floor(place), known ? &known->below : nullptr); };
  auto above_place = [&] { return sorted.at(lax::ceil(place), known ? &known->above : nullptr); };
  Array result;
  if (method == "lower")
    result = below_place();
  else if (method == "higher")
    result = above_place();
  else if (method == "nearest")
    result = sorted.at(lax::round(place), nullptr);
  else if (by_method || method == "linear" || method == "midpoint") {
    const Array below = below_place(), above = above_place();
    const Array t = lax::sub(place, lax::floor(place));
    const Array whole = lax::eq(t, constant(0, t));
    const Array weight =
        method == "midpoint" ? filled(0.5, below) : as_weak_as(below, astype(t, below.dtype()));
    const Array between =
        lax::add(lax::mul(below, lax::sub(filled(1, below), weight)), lax::mul(above, weight));
    result = lax::select(lax::bitwise_or(whole, lax::eq(below, above)), below,
                         between);  // inf - inf, 0 * inf
  } else {
    throw ValueError(std::string(function) + ": method is '" + method + "'",
                     "choose 'linear', 'lower', 'higher', 'nearest', 'midpoint', 'inverted_cdf', "
                     "'averaged_inverted_cdf', 'closest_observation', 'interpolated_inverted_cdf', "
                     "'hazen', 'weibull', 'median_unbiased' or 'normal_unbiased'");
  }
  if (nan_rows == NanRows::propagate) {  // NaN sorts last
    const Array end = plait::broadcast_to(sorted.last(), spread);
    result = lax::select(lax::ne(end, end), end, result);
  }
  // The axes of q first, then the remaining ones, or all with size 1.
  result = moved(result, last, 0);
  Shape shape = q.shape();
  for (int i = 0; i < x.ndim(); ++i) {
    const bool reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!reduced)
      shape.push_back(x.shape(i));
    else if (keepdims)
      shape.push_back(1);
  }
  return lax::reshape(result, shape);
}

}  // namespace

Array numpy::quantile(Operand a, Operand q, const Axes& axis, const std::string& method,
                      bool keepdims) {
  return quantiles("quantile", a, q, PartsOf::one, axis, method, keepdims, NanRows::propagate);
}
Array numpy::percentile(Operand a, Operand q, const Axes& axis, const std::string& method,
                        bool keepdims) {
  return quantiles("percentile", a, q, PartsOf::hundred, axis, method, keepdims,
                   NanRows::propagate);
}
Array numpy::median(Operand a, const Axes& axis, bool keepdims) {
  return quantiles("median", a, 0.5, PartsOf::one, axis, "linear", keepdims, NanRows::propagate);
}
Array numpy::nanquantile(Operand a, Operand q, const Axes& axis, const std::string& method,
                         bool keepdims) {
  return quantiles("nanquantile", a, q, PartsOf::one, axis, method, keepdims, NanRows::ignore);
}
Array numpy::nanpercentile(Operand a, Operand q, const Axes& axis, const std::string& method,
                           bool keepdims) {
  return quantiles("nanpercentile", a, q, PartsOf::hundred, axis, method, keepdims,
                   NanRows::ignore);
}
Array numpy::nanmedian(Operand a, const Axes& axis, bool keepdims) {
  return quantiles("nanmedian", a, 0.5, PartsOf::one, axis, "linear", keepdims, NanRows::ignore);
}

// --- Counts --------------------------------------------------------------------------------------

Array numpy::bincount(Operand x, const OptionalArray& weights, int minlength,
                      std::optional<Dim> length) {
  if (!is_integer(x.dtype()) && !is_bool(x.dtype()))
    throw DtypeError("bincount: dtype " + std::string(name_of(x.dtype())) + " is not an integer",
                     "convert it with astype");
  if (x.ndim() != 1)
    throw ShapeError("bincount: an array of shape (" + x.shape().to_string() + ")",
                     "give a vector");
  if (minlength < 0)
    throw ValueError("bincount: minlength is " + std::to_string(minlength), "give a length >= 0");
  const Array bins = maximum(astype(x, size_of(x.dtype()) < 4 ? default_int() : x.dtype()), 0);
  Dim size = length.value_or(minlength);
  if (!length && !(x.shape(0) == Dim(0)))
    size = std::max<std::int64_t>(
        minlength, known_size(max(bins), "bincount", "say how many bins with length=") + 1);
  const Array ones = weights ? *weights : lax::full(x.shape(), 1, default_int());
  if (!(ones.shape() == x.shape()))
    throw ShapeError("bincount: weights of shape (" + ones.shape().to_string() + ") for " +
                         x.shape(0).to_string() + " elements",
                     "give one weight for each");
  const Array rows = lax::reshape(bins, {x.shape(0), 1});
  return lax::scatter(lax::full({size}, 0, ones.dtype()), rows, ones, {{0}, {0}, 0},
                      lax::ScatterKind::add, {lax::GatherScatterMode::fill, false, false});
}

// --- Differences ---------------------------------------------------------------------------------

Array numpy::diff(Operand a, int n, int axis, const OptionalArray& prepend,
                  const OptionalArray& append) {
  if (n < 0) throw ValueError("diff: n is " + std::to_string(n), "give a count >= 0");
  if (n == 0) return a;
  const int dim = normalize_axis(axis, a.ndim(), "diff");
  Arrays parts;
  auto add = [&](const OptionalArray& more) {  // a scalar stands for a slice
    if (!more) return;
    Shape slice = a.shape();
    slice[dim] = 1;
    parts.push_back(more->ndim() == 0 ? plait::broadcast_to(*more, slice) : *more);
  };
  add(prepend);
  parts.push_back(a);
  add(append);
  Array result = parts.size() == 1 ? Array(a) : concatenate(parts, dim);
  for (int i = 0; i < n; ++i) {
    const Dim size = result.shape(dim);
    if (size == Dim(0)) break;
    const Dim one = minimum(1, size);  // a named size may be 0
    const Array after = part(result, dim, one, size), before = part(result, dim, 0, size - one);
    result = is_bool(result.dtype()) ? lax::ne(after, before) : lax::sub(after, before);
  }
  return result;
}

namespace {

Array lexsort_of(const Argument& keys, int axis) {
  if (std::optional<Arrays> list = detail::as_arrays(keys)) return numpy::lexsort(*list, axis);
  if (std::optional<Array> array = detail::as_array(keys); array && array->ndim() > 0)
    return numpy::lexsort(numpy::unstack(*array), axis);
  throw DtypeError("lexsort: keys are no sequence of arrays", "call it as lexsort(keys, axis=-1)");
}

template <auto quantile>
Array with_parts(Operand a, const QuantileParts& q, const Axes& axis, const std::string& method,
                 bool keepdims) {
  return quantile(a, q.array, axis, method, keepdims);
}

[[maybe_unused]] const FunctionInfo* const sorting_functions[] = {
    function("numpy", "sort(a, axis=-1, *, kind=None!, order=None!, stable=True, descending=False)",
             "The elements in order along an axis (None: all in a row). NaN is greatest; complex "
             "numbers are ordered as pairs.",
             &numpy::sort),
    function("numpy",
             "argsort(a, axis=-1, *, kind=None!, order=None!, stable=True, descending=False)",
             "The indices, int32, that sort along an axis.", &numpy::argsort),
    function("numpy", "lexsort(keys, axis=-1)",
             "The indices that sort by the last key, then by the one before it, and so on.",
             &lexsort_of),
    function("numpy", "searchsorted(a, v, side='left', sorter=None, *, method='scan'!)",
             "Where v would keep the sorted vector a in order, int32: before ('left') or after "
             "equal elements. By bisection.",
             &numpy::searchsorted),
    function("numpy", "digitize(x, bins, right=False, *, method=None!)",
             "In which of the bins between rising (or falling) edges each element lies, int32: i "
             "where edge i - 1 <= x < edge i, or with right edge i - 1 < x <= edge i.",
             &numpy::digitize),
    function("numpy",
             "quantile(a, q, axis=None, out=None!, overwrite_input=False!, method='linear', "
             "keepdims=False)",
             "The element below which the part q of the elements over axes lies, between two as "
             "method says: 'linear', 'lower', "
             "'higher', 'nearest', 'midpoint', 'inverted_cdf', 'averaged_inverted_cdf', "
             "'closest_observation', 'interpolated_inverted_cdf', 'hazen', 'weibull', "
             "'median_unbiased' or 'normal_unbiased'. NaN when any is. The axes of q come first. "
             "ValueError for a known q that is not from 0 to 1; others give the nearest element.",
             &with_parts<&numpy::quantile>),
    function("numpy",
             "percentile(a, q, axis=None, out=None!, overwrite_input=False!, method='linear', "
             "keepdims=False)",
             "quantile with q in percent.", &with_parts<&numpy::percentile>),
    function("numpy", "median(a, axis=None, out=None!, overwrite_input=False!, keepdims=False)",
             "The middle element over axes, or the mean of two; NaN when any is.", &numpy::median),
    function("numpy",
             "nanquantile(a, q, axis=None, out=None!, overwrite_input=False!, method='linear', "
             "keepdims=False)",
             "quantile of elements that are not NaN.", &with_parts<&numpy::nanquantile>),
    function("numpy",
             "nanpercentile(a, q, axis=None, out=None!, overwrite_input=False!, method='linear', "
             "keepdims=False)",
             "percentile of elements that are not NaN.", &with_parts<&numpy::nanpercentile>),
    function("numpy", "nanmedian(a, axis=None, out=None!, overwrite_input=False!, keepdims=False)",
             "median of elements that are not NaN.", &numpy::nanmedian),
    function("numpy", "bincount(x, weights=None, minlength=0, *, length=None)",
             "How often each integer from 0 occurs, or the sum of its weights. Negative ones count "
             "as 0. Without length the largest "
             "must be known.",
             &numpy::bincount),
    function("numpy", "diff(a, n=1, axis=-1, prepend=None, append=None)",
             "Differences of neighbours along an axis, n times; of bools, whether they differ. "
             "prepend and append, arrays or numbers, are put before and after first.",
             &numpy::diff),
};

}  // namespace
}  // namespace plait
