// plait.numpy.pad: the modes that compute what they add.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/numpy_pad.h>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

using Widths = std::vector<PadWidth::Pair>;

// Values before and after each axis, from a number, a pair, or a pair for each axis.
class SideValues {
 public:
  SideValues(const Array& given, int rank, DType dtype, const char* name) {
    const Shape wanted{rank, 2};
    if (given.ndim() > 2)
      throw ShapeError(
          std::string("pad: ") + name + " of shape (" + given.shape().to_string() + ")",
          "give a number, (before, after), or a pair for each axis");
    values_ = plait::broadcast_to(astype(given, dtype), wanted);
  }
  Array of(int axis, int side) const {
    return lax::reshape(lax::slice(values_, {axis, side}, {axis + 1, side + 1}), {});
  }

 private:
  Array values_;
};

Array joined(const Array& before, const Array& x, const Array& after, int axis) {
  return lax::concatenate({before, x, after}, axis);
}
Shape with_size(Shape shape, int axis, Dim size) {
  shape[axis] = size;
  return shape;
}

Array pad_constants(Array x, const Widths& widths, const SideValues& values) {
  for (int axis = 0; axis < x.ndim(); ++axis) {
    auto side = [&](Dim width, int which) {
      return plait::broadcast_to(values.of(axis, which), with_size(x.shape(), axis, width));
    };
    x = joined(side(widths[axis].first, 0), x, side(widths[axis].second, 1), axis);
  }
  return x;
}

// From the outermost value to the edge, in equal steps.
Array pad_ramps(Array x, const Widths& widths, const SideValues& ends) {
  for (int axis = 0; axis < x.ndim(); ++axis) {
    const Dim n = x.shape(axis);
    auto side = [&](Dim width, int which) {
      const Array edge = to_inexact(which == 0 ? part(x, axis, 0, 1) : part(x, axis, n - 1, n));
      Shape along(x.ndim(), 1);
      along[axis] = width;
      const Array steps = astype(lax::reshape(counting(width), along), edge.dtype());
      const Array share = numpy::divide(steps, number_of(maximum(width, 1), edge.dtype()));
      const Array end = astype(ends.of(axis, which), edge.dtype());
      Array ramp = numpy::add(end, numpy::multiply(numpy::subtract(edge, end), share));
      if (is_integer(x.dtype())) ramp = numpy::floor(ramp);
      ramp = astype(ramp, x.dtype());
      return which == 0 ? ramp : lax::rev(ramp, std::vector<int>{axis});
    };
    x = joined(side(widths[axis].first, 0), x, side(widths[axis].second, 1), axis);
  }
  return x;
}

Array statistic(const Array& x, int axis, const std::string& mode) {
  if (mode == "maximum") return numpy::max(x, axis, true);
  if (mode == "minimum") return numpy::min(x, axis, true);
  Array value = mode == "mean" ? numpy::mean(x, axis, {}, true) : numpy::median(x, axis, true);
  if (is_integer(x.dtype())) value = numpy::rint(value);
  return astype(value, x.dtype());
}

Array pad_statistics(Array x, const Widths& widths, const std::string& mode,
                     const std::optional<PadWidth>& stat_length) {
  const std::optional<Widths> lengths =
      stat_length ? std::optional<Widths>(stat_length->of(x.ndim(), "pad")) : std::nullopt;
  for (int axis = 0; axis < x.ndim(); ++axis) {
    const Dim n = x.shape(axis);
    auto side = [&](Dim width, int which) {
      Dim length = n;
      if (lengths) length = which == 0 ? (*lengths)[axis].first : (*lengths)[axis].second;
      if (less_equal(length, 0) == true)
        throw ValueError(
            "pad: mode '" + mode + "' of no elements along axis " + std::to_string(axis),
            "give a stat_length >= 1, and an array with elements");
      length = minimum(length, n);
      const Array taken = which == 0 ? part(x, axis, 0, length) : part(x, axis, n - length, n);
      return plait::broadcast_to(statistic(taken, axis, mode), with_size(x.shape(), axis, width));
    };
    x = joined(side(widths[axis].first, 0), x, side(widths[axis].second, 1), axis);
  }
  return x;
}

// Point reflections at both ends: each period adds twice the difference of the ends.
Array pad_odd(Array x, const Widths& widths, const std::string& mode) {
  for (int axis = 0; axis < x.ndim(); ++axis) {
    const Dim n = x.shape(axis);
    const auto& [before, after] = widths[axis];
    if (before == Dim(0) && after == Dim(0)) continue;
    if (n == Dim(0))
      throw ValueError("pad: axis " + std::to_string(axis) + " has no elements to pad with",
                       "use mode 'constant'");
    const Dim overlap = mode == "reflect" ? 1 : 0, period = maximum(1, 2 * (n - overlap));
    auto number = [](Dim dim) { return number_of(dim, default_int()); };
    const Array position = lax::sub(counting(before + n + after), number(before));
    const Array place = numpy::remainder(position, number(period));
    const Array turns = numpy::floor_divide(position, number(period));
    const Array is_turned = numpy::greater_equal(place, number(n));
    const Array shown =
        numpy::where(is_turned, numpy::subtract(number(2 * n - 1 - overlap), place), place);
    Shape along(x.ndim(), 1);
    along[axis] = before + n + after;
    const Array first = part(x, axis, 0, 1), last = part(x, axis, n - 1, n);
    const Array values = numpy::take(x, shown, axis, "clip");
    const Array turned = numpy::subtract(numpy::multiply(last, 2), values);
    const Array lift = numpy::multiply(numpy::multiply(numpy::subtract(last, first), 2),
                                       astype(lax::reshape(turns, along), x.dtype()));
    x = astype(numpy::add(numpy::where(lax::reshape(is_turned, along), turned, values), lift),
               x.dtype());
  }
  return x;
}

}  // namespace

Array numpy::pad(Operand array, const PadWidth& pad_width, const std::string& mode,
                 const PadOptions& options) {
  if (options.reflect_type != "even" && options.reflect_type != "odd")
    throw ValueError("pad: reflect_type is '" + options.reflect_type + "'",
                     "choose 'even' or 'odd'");
  if (mode == "constant" && options.constant_values.ndim() == 0)
    return pad(array, pad_width, mode, Operand(options.constant_values));
  const Widths widths = pad_width.of(array.ndim(), "pad");
  const bool is_odd = (mode == "reflect" || mode == "symmetric") && options.reflect_type == "odd";
  const bool is_statistic =
      mode == "maximum" || mode == "minimum" || mode == "mean" || mode == "median";
  if (!is_odd && !is_statistic && mode != "constant" && mode != "linear_ramp" && mode != "empty") {
    if (mode == "edge" || mode == "reflect" || mode == "symmetric" || mode == "wrap")
      return pad(array, pad_width, mode, 0);
    throw ValueError("pad: mode is '" + mode + "'",
                     "choose 'constant', 'edge', 'reflect', 'symmetric', 'wrap', 'linear_ramp', "
                     "'maximum', 'mean', 'median', 'minimum', 'empty' or a function");
  }
  for (const auto& [before, after] : widths)
    if (less_equal(0, before) == false || less_equal(0, after) == false)
      throw ValueError(
          "pad: the pad width (" + before.to_string() + ", " + after.to_string() + ") is negative",
          "give widths >= 0, and slice to shorten");
  if (mode == "empty") return pad(array, pad_width, "constant", 0);
  if (is_odd) return pad_odd(array, widths, mode);
  if (is_statistic) return pad_statistics(array, widths, mode, options.stat_length);
  if (mode == "constant")
    return pad_constants(array, widths,
                         {options.constant_values, array.ndim(), array.dtype(), "constant_values"});
  return pad_ramps(array, widths, {options.end_values, array.ndim(), array.dtype(), "end_values"});
}

namespace {

Array pad_of(Operand array, const PadWidth& pad_width, const std::string& mode,
             Operand constant_values, Operand end_values,
             const std::optional<PadWidth>& stat_length, const std::string& reflect_type) {
  return numpy::pad(array, pad_width, mode,
                    {constant_values, end_values, stat_length, reflect_type});
}

[[maybe_unused]] const FunctionInfo* const padding_functions[] = {
    function("numpy",
             "pad(array, pad_width, mode='constant', constant_values=0, end_values=0, "
             "stat_length=None, reflect_type='even')",
             "array with elements before and after along axes. mode: 'constant' (constant_values), "
             "'edge', 'reflect' (without the edge), 'symmetric' (with it), 'wrap', 'linear_ramp' "
             "(to end_values), 'maximum', 'mean', 'median' or 'minimum' (of the stat_length "
             "elements next to the edge; None: of all), 'empty' (zeros). reflect_type 'odd' gives "
             "twice the edge less the reflection. Widths: a number, a pair, or a pair for each "
             "axis; values likewise. mode may be a function of (row, (before, after), axis, "
             "keywords), which gives the padded row.",
             &pad_of),
};

}  // namespace
}  // namespace plait
