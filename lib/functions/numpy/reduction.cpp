// plait.numpy: reductions over axes, cumulative sums, and their variants that ignore NaN.
//
// mean and var are composites, which backends may claim. Integers are averaged in float64 and
// 16-bit floats in float32, and rounded once.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/narrow.h>

#include <cmath>

#include "functions/functions.h"
#include "functions/numpy/complex.h"
#include "functions/numpy/known_values.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

using numpy::OptionalDType;

// An operand for the optional arguments `where` and `initial`.
using OptionalArray = std::optional<Array>;

// NumPy's dtype of sums: bools and small integers become the default integer.
DType sum_dtype(DType dtype) {
  if (is_bool(dtype)) return default_int();
  if (is_signed_integer(dtype) && size_of(dtype) < size_of(default_int())) return default_int();
  if (is_unsigned_integer(dtype) && size_of(dtype) < size_of(default_int()))
    return default_int() == DType::int64 ? DType::uint64 : DType::uint32;
  return dtype;
}

// The summands, in the requested dtype, or in that of sums.
Array summand(const Array& a, OptionalDType dtype) {
  return dtype ? lax::convert_element_type(a, *dtype) : astype(a, sum_dtype(a.dtype()));
}

Array finished(const Array& reduced, const Shape& shape, std::span<const int> axes, bool keepdims) {
  return keepdims ? with_axes(reduced, shape, axes) : reduced;
}

// x where the mask is true, and the scalar of make_identity() elsewhere.
Array masked_by(const Array& x, const OptionalArray& where, const auto& make_identity,
                std::string_view function) {
  if (!where) return x;
  Arrays operands{truth(*where), x};
  broadcast_shapes(std::span<Array>(operands), function);
  const Shape shape = operands[1].ndim() == 0 ? operands[0].shape() : operands[1].shape();
  return lax::select(operands[0], plait::broadcast_to(operands[1], shape),
                     plait::broadcast_to(make_identity(), shape));
}

Array combined(Array (*reduce)(Operand, std::span<const int>), Array (*combine)(Operand, Operand),
               const Array& x, const Axes& axis, bool keepdims, const OptionalArray& initial,
               std::string_view function) {
  if (is_stored(x.dtype())) throw_stored(x.dtype());  // over no axis it would be x
  const std::vector<int> axes = axis.of(x.ndim(), function);
  const Array result = finished(reduce(x, axes), x.shape(), axes, keepdims);
  return initial
             ? combine(result, yielded(*initial, result.dtype(), initial->aval().weak, function))
             : result;
}

void require_elements(const Array& x, std::span<const int> axes, std::string_view function) {
  for (int axis : axes)
    if (x.shape(axis) == Dim(0))
      throw ValueError(std::string(function) + ": axis " + std::to_string(axis) +
                           " of an array of shape (" + x.shape().to_string() + ") has no elements",
                       "give an initial value, or reduce another axis");
}

Array complex_max(Operand x, std::span<const int> axes) {
  return complex_extreme_over(x, axes, true);
}
Array complex_min(Operand x, std::span<const int> axes) {
  return complex_extreme_over(x, axes, false);
}

Array extreme(bool largest, const Operand& a, const Axes& axis, bool keepdims,
              const OptionalArray& initial, const OptionalArray& where) {
  const char* name = largest ? "max" : "min";
  if (where && !initial)
    throw ValueError(
        std::string(name) + ": where needs an initial value, the result where nothing is left",
        "give initial=");
  if (!initial) require_elements(a, axis.of(a.ndim(), name), name);
  auto identity = [&] {
    const double end = largest ? -INFINITY : INFINITY;
    if (is_complex(a.dtype()))
      return Array(lax::complex(constant(end, lax::real(a)), constant(end, lax::real(a))));
    const bool infinite = is_floating(a.dtype());
    return infinite  ? constant(largest ? -INFINITY : INFINITY, a)
           : largest ? lowest_finite(a.dtype())
                     : largest_finite(a.dtype());
  };
  const Array x = masked_by(a, where, identity, name);
  if (is_complex(x.dtype()))
    return largest ? combined(complex_max, numpy::maximum, x, axis, keepdims, initial, name)
                   : combined(complex_min, numpy::minimum, x, axis, keepdims, initial, name);
  return largest ? combined(lax::reduce_max, lax::max, x, axis, keepdims, initial, name)
                 : combined(lax::reduce_min, lax::min, x, axis, keepdims, initial, name);
}

}  // namespace

Array numpy::sum(Operand a, const Axes& axis, OptionalDType dtype, bool keepdims,
                 const OptionalArray& initial, const OptionalArray& where) {
  const bool is_count = is_bool(a.dtype()) && dtype.value_or(default_int()) == default_int();
  if (is_count && axis.is_none() && !keepdims && !initial && !where && is_known(a))
    return number_of_true(a);
  const Array x = summand(a, dtype);
  const Array masked = masked_by(x, where, [&] { return constant(0, x); }, "sum");
  return combined(lax::reduce_sum, lax::add, masked, axis, keepdims, initial, "sum");
}

namespace {

bool may_be_nan(const Array& x) {
  if (Trace::current() || !x.node()->is_plain()) return true;
  return x.ndim() == 0 ? std::isnan(x.item<double>()) : numpy::any(numpy::isnan(x)).item<bool>();
}

// Whether elements are multiplied in their order: columns of few rows are.
bool is_in_order(const Array& x, const std::vector<int>& axes) {
  constexpr std::int64_t few = 64;
  const bool over_last = std::find(axes.begin(), axes.end(), x.ndim() - 1) != axes.end();
  return !over_last && less_equal(size_of_axes(x.shape(), axes), few) == true;
}

// Positive for a zero, 0 for other finite numbers, else NaN: the sum says whether there is a zero
// among finite numbers.
Array zeros_of_finite(const Array& x) {
  const Array zero = constant(0, x);
  return lax::stop_gradient(lax::select(lax::eq(x, zero), filled(1, x), lax::mul(x, zero)));
}

}  // namespace

Array numpy::prod(Operand a, const Axes& axis, OptionalDType dtype, bool keepdims,
                  const OptionalArray& initial, const OptionalArray& where) {
  const Array x = summand(a, dtype);
  const Array masked = masked_by(x, where, [&] { return constant(1, x); }, "prod");
  const Array result =
      combined(lax::reduce_prod, lax::mul, masked, axis, keepdims, initial, "prod");
  // Parts are multiplied before others: one may overflow that would have met a zero, 0 * inf.
  if (!is_floating(x.dtype()) || is_in_order(x, axis.of(x.ndim(), "prod")) || !may_be_nan(result))
    return result;
  OptionalArray first;
  if (initial) first = zeros_of_finite(astype(*initial, x.dtype()));
  const Array zeros =
      combined(lax::reduce_sum, lax::add, zeros_of_finite(masked), axis, keepdims, first, "prod");
  const Array zero = constant(0, result);
  const Array is_zero = lax::bitwise_and(lax::ne(result, result), lax::gt(zeros, zero));
  return lax::select(is_zero, filled(0, result), result);
}

Array numpy::max(Operand a, const Axes& axis, bool keepdims, const OptionalArray& initial,
                 const OptionalArray& where) {
  return extreme(true, a, axis, keepdims, initial, where);
}
Array numpy::min(Operand a, const Axes& axis, bool keepdims, const OptionalArray& initial,
                 const OptionalArray& where) {
  return extreme(false, a, axis, keepdims, initial, where);
}
Array numpy::amax(Operand a, const Axes& axis, bool keepdims, const OptionalArray& initial,
                  const OptionalArray& where) {
  return max(a, axis, keepdims, initial, where);
}
Array numpy::amin(Operand a, const Axes& axis, bool keepdims, const OptionalArray& initial,
                  const OptionalArray& where) {
  return min(a, axis, keepdims, initial, where);
}

Array numpy::any(Operand a, const Axes& axis, bool keepdims, const OptionalArray& where) {
  const Array x = truth(a);
  const Array masked = masked_by(x, where, [&] { return Array(false); }, "any");
  return combined(lax::reduce_or, lax::bitwise_or, masked, axis, keepdims, {}, "any");
}
Array numpy::all(Operand a, const Axes& axis, bool keepdims, const OptionalArray& where) {
  const Array x = truth(a);
  const Array masked = masked_by(x, where, [&] { return Array(true); }, "all");
  return combined(lax::reduce_and, lax::bitwise_and, masked, axis, keepdims, {}, "all");
}

// --- Means ---------------------------------------------------------------------------------------

namespace {

// The dtype in which a mean is computed, for operands and a result of these dtypes.
DType mean_compute_dtype(DType from, DType to) {
  if (!is_inexact(from)) return is_complex(to) ? DType::complex128 : DType::float64;
  return size_of(to) == 2 ? DType::float32 : to;
}

std::vector<int> attribute_axes(const Params& attributes, int rank) {
  std::vector<int> axes = attributes.ints("axes");
  for (int& axis : axes) axis += rank;
  return axes;
}

Array sum_over(const Array& x, std::span<const int> axes) { return lax::reduce_sum(x, axes); }

Arrays mean_body(std::span<const Array> inputs, const Params& attributes) {
  const DType dtype = attributes.get<DType>("dtype");
  const Array x = astype(inputs[0], mean_compute_dtype(inputs[0].dtype(), dtype));
  const std::vector<int> axes = attribute_axes(attributes, x.ndim());
  const Array mean = lax::div(sum_over(x, axes), number_for(x, size_of_axes(x.shape(), axes)));
  return {finished(astype(mean, dtype), x.shape(), axes, attributes.flag("keepdims"))};
}

// Two passes: the mean, then the mean of squared deviations.
Arrays var_body(std::span<const Array> inputs, const Params& attributes) {
  const DType dtype = attributes.get<DType>("dtype");
  const Array x =
      astype(inputs[0],
             mean_compute_dtype(inputs[0].dtype(),
                                is_complex(inputs[0].dtype()) ? complex_dtype_of(dtype) : dtype));
  const std::vector<int> axes = attribute_axes(attributes, x.ndim());
  const Dim size = size_of_axes(x.shape(), axes);
  const Array mean = with_axes(lax::div(sum_over(x, axes), number_for(x, size)), x.shape(), axes);
  const Array centered = lax::sub(x, plait::broadcast_to(mean, x.shape()));
  const Array square = is_complex(x.dtype())
                           ? lax::add(lax::mul(lax::real(centered), lax::real(centered)),
                                      lax::mul(lax::imag(centered), lax::imag(centered)))
                           : lax::mul(centered, centered);
  const Array divisor =
      lax::sub(number_for(square, size), constant(attributes.get<double>("ddof"), square));
  const Array var = lax::div(sum_over(square, axes), lax::max(divisor, constant(0, divisor)));
  return {finished(astype(var, dtype), x.shape(), axes, attributes.flag("keepdims"))};
}

const Composite& mean_composite =
    define_composite({"mean",
                      "The mean over axes (counted from the back); keepdims, dtype of the result.",
                      mean_body,
                      {}});
const Composite& var_composite =
    define_composite({"var",
                      "The mean square distance from the mean over axes (counted from the back); "
                      "ddof is taken from the divisor.",
                      var_body,
                      {}});

DType mean_dtype(const Array& a, std::optional<DType> dtype, std::string_view function) {
  if (dtype && !is_inexact(*dtype))
    throw DtypeError(
        std::string(function) + ": dtype " + std::string(name_of(*dtype)) + " holds no fractions",
        "ask for a float dtype and convert the result");
  if (dtype) return *dtype;
  return is_inexact(a.dtype()) ? a.dtype() : a.aval().weak ? DType::float64 : default_float();
}

// A result in the requested dtype, if any.
Array as_asked(const Array& result, std::optional<DType> dtype) {
  return dtype ? lax::convert_element_type(result, *dtype) : result;
}

// The number of elements that `where` keeps along the axes, as a float.
Array count_where(const Array& a, const Array& where, const Axes& axis, DType dtype,
                  bool keepdims) {
  Arrays operands{truth(where), a};
  broadcast_shapes(std::span<Array>(operands), "where");
  const Array mask = plait::broadcast_to(operands[0], operands[1].shape());
  return as_weak_as(a, numpy::sum(astype(mask, dtype), axis, {}, keepdims));
}

Array mean_where(const Array& x, const Axes& axis, OptionalDType dtype, bool keepdims,
                 const Array& where) {
  return as_asked(numpy::divide(numpy::sum(x, axis, {}, keepdims, {}, where),
                                count_where(x, where, axis, x.dtype(), keepdims)),
                  dtype);
}

}  // namespace

Array numpy::mean(Operand a, const Axes& axis, OptionalDType dtype, bool keepdims,
                  const OptionalArray& where) {
  const DType to = mean_dtype(a, dtype, "mean");
  if (where) return mean_where(functions::astype(a, to), axis, dtype, keepdims, *where);
  const std::vector<int> axes = axis.of(a.ndim(), "mean");
  return as_asked(
      composite(mean_composite, {a},
                {{"axes", from_back(axes, a.ndim())}, {"keepdims", keepdims}, {"dtype", to}}),
      dtype);
}

Array numpy::var(Operand a, const Axes& axis, OptionalDType dtype, double ddof, bool keepdims,
                 const OptionalArray& where, std::optional<double> correction) {
  if (correction) {
    if (ddof != 0)
      throw ValueError("var: both ddof and correction are given", "they are one thing: give one");
    ddof = *correction;
  }
  const DType to = real_dtype_of(mean_dtype(a, dtype, "var"));
  if (where) {
    const Array given = is_inexact(a.dtype()) ? Array(a) : functions::astype(a, to);
    // What is left out may be NaN, which would reach the derivative as 0 * NaN.
    const Array x = masked_by(given, where, [&] { return constant(0, given); }, "var");
    const Array centered = abs(subtract(x, mean(x, axis, {}, true, where)));
    const Array count = count_where(a, *where, axis, to, keepdims);
    const Array squares = functions::astype(multiply(centered, centered), to);
    return as_asked(divide(sum(squares, axis, {}, keepdims, {}, where),
                           lax::max(lax::sub(count, constant(ddof, count)), constant(0, count))),
                    dtype ? OptionalDType(to) : dtype);
  }
  const std::vector<int> axes = axis.of(a.ndim(), "var");
  return as_asked(composite(var_composite, {a},
                            {{"axes", from_back(axes, a.ndim())},
                             {"keepdims", keepdims},
                             {"dtype", to},
                             {"ddof", ddof}}),
                  dtype ? OptionalDType(to) : dtype);
}

Array numpy::std(Operand a, const Axes& axis, OptionalDType dtype, double ddof, bool keepdims,
                 const OptionalArray& where, std::optional<double> correction) {
  return lax::sqrt(var(a, axis, dtype, ddof, keepdims, where, correction));
}

Array numpy::average(Operand a, const Axes& axis, const OptionalArray& weights, bool keepdims) {
  if (!weights) return mean(a, axis, {}, keepdims);
  Array w = *weights;
  if (!(w.shape() == a.shape())) {  // weights along the axes, in their order
    std::vector<int> axes, places;
    if (!axis.is_none())
      for (int dim : axis.list()) axes.push_back(normalize_axis(dim, a.ndim(), "average"));
    Shape shape;
    for (int dim : axes) shape.push_back(a.shape(dim));
    if (axes.empty() || !(w.shape() == shape))
      throw ShapeError("average: weights of shape (" + w.shape().to_string() +
                           ") for an array of shape (" + a.shape().to_string() + ")",
                       "give weights of the array's shape, or of its sizes along the axes");
    for (int i = 0; i < int(axes.size()); ++i) places.push_back(i);
    std::sort(places.begin(), places.end(), [&](int i, int j) { return axes[i] < axes[j]; });
    std::sort(axes.begin(), axes.end());
    w = lax::broadcast_in_dim(lax::transpose(w, places), a.shape(), axes);
  }
  const Arrays x = promoted_inexact("average", {a, w});
  return lax::div(sum(lax::mul(x[0], x[1]), axis, {}, keepdims), sum(x[1], axis, {}, keepdims));
}

Array numpy::ptp(Operand a, const Axes& axis, bool keepdims) {
  return subtract(max(a, axis, keepdims), min(a, axis, keepdims));
}
Array numpy::count_nonzero(Operand a, const Axes& axis, bool keepdims) {
  return sum(truth(a), axis, default_int(), keepdims);
}

// --- Indices of extremes -------------------------------------------------------------------------

namespace {
Array arg_extreme(Array (*reduce)(Operand, int, std::optional<DType>), const Operand& a,
                  std::optional<int> axis, bool keepdims, std::string_view function) {
  const Array x = axis ? Array(a) : raveled(a);
  const int dim = normalize_axis(axis.value_or(0), x.ndim(), function);
  require_elements(x, std::vector<int>{dim}, function);
  const Array index = reduce(is_bool(x.dtype()) ? astype(x, DType::uint8) : x, dim, default_int());
  if (!keepdims) return index;
  return axis ? with_axes(index, x.shape(), std::vector<int>{dim})
              : lax::reshape(index, Shape(a.ndim(), 1));
}
Array without_nan(const Array& a, double value) {
  return is_inexact(a.dtype()) ? lax::select(lax::ne(a, a), filled(value, a), a) : a;
}
Array not_nan(const Array& a) {
  return is_inexact(a.dtype()) ? lax::eq(a, a) : plait::broadcast_to(Array(true), a.shape());
}
// Whether a known array has an element of which test, a comparison, is true.
bool has(const Array& x, const Array& test) {
  return is_known(x) && (x.ndim() == 0 ? test : numpy::any(test)).item<bool>();
}
// The extreme of numbers that are not NaN, of which none is beyond `least`; NaN where there is
// none.
Array extreme_of_numbers(bool largest, const Array& a, const Axes& axis, bool keepdims,
                         const OptionalArray& initial, const OptionalArray& where) {
  const double least = largest ? -INFINITY : INFINITY;
  if (is_known(a) && is_floating(a.dtype()) && !initial && !where) {
    const Array of_all = extreme(largest, a, axis, keepdims, {}, {});
    if (!has(of_all, lax::ne(of_all, of_all))) return of_all;
  }
  const Array result = extreme(largest, without_nan(a, least), axis, keepdims, initial, where);
  if (initial || !is_floating(a.dtype())) return result;
  if (is_known(result) && !has(result, lax::eq(result, constant(least, result)))) return result;
  return lax::select(numpy::any(not_nan(a), axis, keepdims), result, filled(NAN, result));
}
}  // namespace

Array numpy::argmax(Operand a, std::optional<int> axis, bool keepdims) {
  return arg_extreme(lax::argmax, a, axis, keepdims, "argmax");
}
Array numpy::argmin(Operand a, std::optional<int> axis, bool keepdims) {
  return arg_extreme(lax::argmin, a, axis, keepdims, "argmin");
}
Array numpy::nanargmax(Operand a, std::optional<int> axis, bool keepdims) {
  return argmax(without_nan(a, -INFINITY), axis, keepdims);
}
Array numpy::nanargmin(Operand a, std::optional<int> axis, bool keepdims) {
  return argmin(without_nan(a, INFINITY), axis, keepdims);
}

namespace {
// `where`, and not NaN.
OptionalArray numbers_where(const Array& a, const OptionalArray& where) {
  if (!is_inexact(a.dtype())) return where;
  return where ? numpy::logical_and(*where, not_nan(a)) : not_nan(a);
}
}  // namespace

Array numpy::nansum(Operand a, const Axes& axis, OptionalDType dtype, bool keepdims,
                    const OptionalArray& initial, const OptionalArray& where) {
  return sum(without_nan(a, 0), axis, dtype, keepdims, initial, where);
}
Array numpy::nanprod(Operand a, const Axes& axis, OptionalDType dtype, bool keepdims,
                     const OptionalArray& initial, const OptionalArray& where) {
  return prod(without_nan(a, 1), axis, dtype, keepdims, initial, where);
}
Array numpy::nanmean(Operand a, const Axes& axis, OptionalDType dtype, bool keepdims,
                     const OptionalArray& where) {
  return mean(a, axis, dtype, keepdims, numbers_where(a, where));
}
Array numpy::nanvar(Operand a, const Axes& axis, OptionalDType dtype, double ddof, bool keepdims,
                    const OptionalArray& where) {
  return var(a, axis, dtype, ddof, keepdims, numbers_where(a, where));
}
Array numpy::nanstd(Operand a, const Axes& axis, OptionalDType dtype, double ddof, bool keepdims,
                    const OptionalArray& where) {
  return lax::sqrt(nanvar(a, axis, dtype, ddof, keepdims, where));
}
Array numpy::nanmax(Operand a, const Axes& axis, bool keepdims, const OptionalArray& initial,
                    const OptionalArray& where) {
  return extreme_of_numbers(true, a, axis, keepdims, initial, where);
}
Array numpy::nanmin(Operand a, const Axes& axis, bool keepdims, const OptionalArray& initial,
                    const OptionalArray& where) {
  return extreme_of_numbers(false, a, axis, keepdims, initial, where);
}

// --- Running sums --------------------------------------------------------------------------------

namespace {
Array running(Array (*scan)(Operand, int, bool), const Operand& a, std::optional<int> axis,
              std::optional<DType> dtype, std::string_view function) {
  const Array x = summand(axis ? Array(a) : raveled(a), dtype);
  return scan(x, normalize_axis(axis.value_or(0), x.ndim(), function), false);
}
Array with_initial(const Array& scanned, int axis, double value) {
  Shape shape = scanned.shape();
  axis = normalize_axis(axis, shape.rank(), "cumulative_sum");
  shape[axis] = 1;
  return lax::concatenate({plait::broadcast_to(constant(value, scanned), shape), scanned}, axis);
}
int single_axis(const Array& x, std::optional<int> axis, std::string_view function) {
  if (axis) return *axis;
  if (x.ndim() != 1)
    throw ValueError(std::string(function) + ": an array of " + std::to_string(x.ndim()) +
                         " axes, and no axis is named",
                     "give axis=");
  return 0;
}
}  // namespace

Array numpy::cumsum(Operand a, std::optional<int> axis, OptionalDType dtype) {
  return running(lax::cumsum, a, axis, dtype, "cumsum");
}
Array numpy::cumprod(Operand a, std::optional<int> axis, OptionalDType dtype) {
  return running(lax::cumprod, a, axis, dtype, "cumprod");
}
Array numpy::nancumsum(Operand a, std::optional<int> axis, OptionalDType dtype) {
  return cumsum(without_nan(a, 0), axis, dtype);
}
Array numpy::nancumprod(Operand a, std::optional<int> axis, OptionalDType dtype) {
  return cumprod(without_nan(a, 1), axis, dtype);
}
Array numpy::cumulative_sum(Operand x, std::optional<int> axis, OptionalDType dtype,
                            bool include_initial) {
  const int dim = single_axis(x, axis, "cumulative_sum");
  const Array result = cumsum(x, dim, dtype);
  return include_initial ? with_initial(result, dim, 0) : result;
}
Array numpy::cumulative_prod(Operand x, std::optional<int> axis, OptionalDType dtype,
                             bool include_initial) {
  const int dim = single_axis(x, axis, "cumulative_prod");
  const Array result = cumprod(x, dim, dtype);
  return include_initial ? with_initial(result, dim, 1) : result;
}

namespace {

Argument average_of(Operand a, const Axes& axis, const OptionalArray& weights, bool returned,
                    bool keepdims) {
  const Array mean = numpy::average(a, axis, weights, keepdims);
  if (!returned) return detail::give(mean);
  const Array weight =
      !weights ? number_of(size_of_axes(a.shape(), axis.of(a.ndim(), "average")), mean.dtype())
      : weights->shape() == a.shape() ? numpy::sum(*weights, axis, {}, keepdims)
                                      : numpy::sum(*weights);
  return detail::give(
      std::pair(mean, plait::broadcast_to(astype(weight, mean.dtype()), mean.shape())));
}

using Total = Array (*)(Operand, const Axes&, OptionalDType, bool, const OptionalArray&,
                        const OptionalArray&);
template <Total total>
Array total_of(Operand a, const Axes& axis, OptionalDType dtype, bool keepdims,
               const OptionalArray& initial, const OptionalArray& where, bool promote_integers) {
  const bool keeps = !promote_integers && !dtype && is_integer(a.dtype());
  return total(a, axis, keeps ? OptionalDType(a.dtype()) : dtype, keepdims, initial, where);
}

// The mean square distance from a mean that is known, which broadcasts against a.
Array var_about(const Array& mean, const Array& a, const Axes& axis, OptionalDType dtype,
                double ddof, bool keepdims, const OptionalArray& where) {
  const DType to = real_dtype_of(mean_dtype(a, dtype, "var"));
  const Array given = is_inexact(a.dtype()) ? a : functions::astype(a, to);
  const Array x = masked_by(given, where, [&] { return constant(0, given); }, "var");
  const Array distance = numpy::abs(numpy::subtract(x, mean));
  const Array squares = functions::astype(numpy::multiply(distance, distance), to);
  const Array count = where ? count_where(a, *where, axis, to, keepdims)
                            : number_of(size_of_axes(a.shape(), axis.of(a.ndim(), "var")), to);
  return as_asked(
      numpy::divide(numpy::sum(squares, axis, {}, keepdims, {}, where),
                    lax::max(lax::sub(count, constant(ddof, count)), constant(0, count))),
      dtype ? OptionalDType(to) : dtype);
}
Array var_of(Operand a, const Axes& axis, OptionalDType dtype, double ddof, bool keepdims,
             const OptionalArray& where, const OptionalArray& mean,
             std::optional<double> correction) {
  if (!mean) return numpy::var(a, axis, dtype, ddof, keepdims, where, correction);
  return var_about(*mean, a, axis, dtype, correction.value_or(ddof), keepdims, where);
}
Array std_of(Operand a, const Axes& axis, OptionalDType dtype, double ddof, bool keepdims,
             const OptionalArray& where, const OptionalArray& mean,
             std::optional<double> correction) {
  if (!mean) return numpy::std(a, axis, dtype, ddof, keepdims, where, correction);
  return numpy::sqrt(var_about(*mean, a, axis, dtype, correction.value_or(ddof), keepdims, where));
}

Array nanvar_of(Operand a, const Axes& axis, OptionalDType dtype, double ddof, bool keepdims,
                const OptionalArray& where, const OptionalArray& mean) {
  if (!mean) return numpy::nanvar(a, axis, dtype, ddof, keepdims, where);
  return var_about(*mean, a, axis, dtype, ddof, keepdims, numbers_where(a, where));
}
Array nanstd_of(Operand a, const Axes& axis, OptionalDType dtype, double ddof, bool keepdims,
                const OptionalArray& where, const OptionalArray& mean) {
  return lax::sqrt(nanvar_of(a, axis, dtype, ddof, keepdims, where, mean));
}

[[maybe_unused]] const FunctionInfo* const reduction_functions[] = {
    function("numpy",
             "sum(a, axis=None, dtype=None, out=None!, keepdims=False, initial=None, where=None, "
             "promote_integers=True)",
             "The sum over axes (None: all). Bools and small integers are added as int32 or "
             "uint32, or with promote_integers=False in their own dtype. With where, of the "
             "elements where it is true; initial is added.",
             &total_of<&numpy::sum>),
    function("numpy",
             "prod(a, axis=None, dtype=None, out=None!, keepdims=False, initial=None, where=None, "
             "promote_integers=True)",
             "The product over axes, with dtypes as in sum.", &total_of<&numpy::prod>),
    function("numpy", "max(a, axis=None, out=None!, keepdims=False, initial=None, where=None)",
             "The largest element over axes; NaN wins. ValueError when there is none and no "
             "initial value.",
             &numpy::max),
    function("numpy", "min(a, axis=None, out=None!, keepdims=False, initial=None, where=None)",
             "The smallest element over axes; NaN wins. ValueError when there is none and no "
             "initial value.",
             &numpy::min),
    function("numpy", "amax(a, axis=None, out=None!, keepdims=False, initial=None, where=None)",
             "The same as max.", &numpy::amax),
    function("numpy", "amin(a, axis=None, out=None!, keepdims=False, initial=None, where=None)",
             "The same as min.", &numpy::amin),
    function("numpy", "any(a, axis=None, out=None!, keepdims=False, *, where=None)",
             "Whether any element over axes is not 0.", &numpy::any),
    function("numpy", "all(a, axis=None, out=None!, keepdims=False, *, where=None)",
             "Whether all elements over axes are not 0.", &numpy::all),
    function("numpy", "mean(a, axis=None, dtype=None, out=None!, keepdims=False, *, where=None)",
             "The mean over axes, a float: NaN of no elements. Integers are averaged in float64, "
             "16-bit floats in float32. A "
             "named axis is divided by its size.",
             &numpy::mean),
    function("numpy",
             "var(a, axis=None, dtype=None, out=None!, ddof=0, keepdims=False, *, where=None, "
             "mean=None, correction=None)",
             "The mean square distance from the mean over axes, in two passes; the divisor is the "
             "count less ddof. mean: the mean, where it is known, with axes of size 1.",
             &var_of),
    function("numpy",
             "std(a, axis=None, dtype=None, out=None!, ddof=0, keepdims=False, *, where=None, "
             "mean=None, correction=None)",
             "The square root of var.", &std_of),
    function(
        "numpy", "average(a, axis=None, weights=None, returned=False, keepdims=False)",
        "The mean over axes with weights, of a's shape or of its sizes along the axes, in their "
        "order; with returned, also "
        "the sum of the weights.",
        &average_of),
    function("numpy", "ptp(a, axis=None, out=None!, keepdims=False)",
             "The largest element less the smallest over axes.", &numpy::ptp),
    function("numpy", "count_nonzero(a, axis=None, keepdims=False)",
             "How many elements over axes are not 0, int32.", &numpy::count_nonzero),
    function("numpy", "argmax(a, axis=None, out=None!, keepdims=False)",
             "The index of the largest element along an axis (None: of all in a row), int32: the "
             "first of equal ones; NaN wins.",
             &numpy::argmax),
    function("numpy", "argmin(a, axis=None, out=None!, keepdims=False)",
             "The index of the smallest element along an axis, as argmax.", &numpy::argmin),
    function("numpy", "nanargmax(a, axis=None, out=None!, keepdims=False)",
             "argmax among elements that are not NaN.", &numpy::nanargmax),
    function("numpy", "nanargmin(a, axis=None, out=None!, keepdims=False)",
             "argmin among elements that are not NaN.", &numpy::nanargmin),
    function(
        "numpy",
        "nansum(a, axis=None, dtype=None, out=None!, keepdims=False, initial=None, where=None)",
        "The sum with NaN as 0.", &numpy::nansum),
    function(
        "numpy",
        "nanprod(a, axis=None, dtype=None, out=None!, keepdims=False, initial=None, where=None)",
        "The product with NaN as 1.", &numpy::nanprod),
    function("numpy", "nanmean(a, axis=None, dtype=None, out=None!, keepdims=False, where=None)",
             "The mean of elements that are not NaN.", &numpy::nanmean),
    function("numpy",
             "nanvar(a, axis=None, dtype=None, out=None!, ddof=0, keepdims=False, where=None, "
             "mean=None)",
             "The variance of elements that are not NaN.", &nanvar_of),
    function("numpy",
             "nanstd(a, axis=None, dtype=None, out=None!, ddof=0, keepdims=False, where=None, "
             "mean=None)",
             "The square root of nanvar.", &nanstd_of),
    function("numpy", "nanmax(a, axis=None, out=None!, keepdims=False, initial=None, where=None)",
             "The largest element that is not NaN; NaN when all are.", &numpy::nanmax),
    function("numpy", "nanmin(a, axis=None, out=None!, keepdims=False, initial=None, where=None)",
             "The smallest element that is not NaN; NaN when all are.", &numpy::nanmin),
    function("numpy", "cumsum(a, axis=None, dtype=None, out=None!)",
             "Running sums along an axis (None: of all elements in a row).", &numpy::cumsum),
    function("numpy", "cumprod(a, axis=None, dtype=None, out=None!)",
             "Running products along an axis.", &numpy::cumprod),
    function("numpy", "nancumsum(a, axis=None, dtype=None, out=None!)",
             "Running sums with NaN as 0.", &numpy::nancumsum),
    function("numpy", "nancumprod(a, axis=None, dtype=None, out=None!)",
             "Running products with NaN as 1.", &numpy::nancumprod),
    function("numpy", "cumulative_sum(x, *, axis=None, dtype=None, include_initial=False)",
             "The array-API standard's cumsum: the axis may be left out for a row; with "
             "include_initial a 0 comes first.",
             &numpy::cumulative_sum),
    function("numpy", "cumulative_prod(x, *, axis=None, dtype=None, include_initial=False)",
             "The array-API standard's cumprod; with include_initial a 1 comes first.",
             &numpy::cumulative_prod),
};

}  // namespace
}  // namespace plait
