// plait.numpy: elements in another order, and padding.
// SPDX-License-Identifier: Apache-2.0
#include "ops/functions.h"

namespace plait {
using namespace functions;  // NOLINT

Array numpy::flip(Operand m, const Axes& axis) { return lax::rev(m, axis.of(m.ndim(), "flip")); }
Array numpy::flipud(Operand m) { return flip(m, 0); }
Array numpy::fliplr(Operand m) { return flip(m, 1); }

Array numpy::rot90(Operand m, int k, const std::vector<int>& axes) {
  if (axes.size() != 2 || Axes(axes).of(m.ndim(), "rot90").size() != 2)
    throw ValueError("rot90: " + std::to_string(axes.size()) + " axes", "name two");
  const int turns = ((k % 4) + 4) % 4;
  if (turns == 0) return m;
  if (turns == 2) return flip(m, axes);
  return turns == 1 ? swapaxes(flip(m, axes[1]), axes[0], axes[1])
                    : flip(swapaxes(m, axes[0], axes[1]), axes[1]);
}

Array numpy::roll(Operand a, const Shape& shift, const Axes& axis) {
  if (axis.is_none()) {
    if (shift.size() != 1)
      throw ValueError("roll: several shifts without axes", "name an axis for each shift");
    return lax::reshape(roll(raveled(a), shift, 0), a.shape());
  }
  // Shifts along an axis named twice add up.
  const std::vector<int>& axes = axis.list();
  if (axes.size() != shift.size() && axes.size() != 1 && shift.size() != 1)
    throw ValueError("roll: " + std::to_string(shift.size()) + " shifts for " +
                         std::to_string(axes.size()) + " axes",
                     "give as many of each");
  Array result = a;
  for (std::size_t i = 0; i < std::max(axes.size(), shift.size()); ++i) {
    const int dim = normalize_axis(axes[axes.size() == 1 ? 0 : i], a.ndim(), "roll");
    const Dim n = result.shape(dim);
    if (n == Dim(0)) continue;
    const Dim by = modulo(shift[shift.size() == 1 ? 0 : i], n);
    if (by == Dim(0)) continue;
    const Dim cut = minimum(n - by, n);  // a named size may be 0
    result = lax::concatenate({part(result, dim, cut, n), part(result, dim, 0, cut)}, dim);
  }
  return result;
}

namespace {

// For each place of a padded axis, the index that is shown there.
Array shown_index(Dim n, const PadWidth::Pair& width, const std::string& mode) {
  const Array position =
      lax::sub(counting(width.first + n + width.second), number_of(width.first, default_int));
  auto number = [](Dim dim) { return number_of(dim, default_int); };
  if (mode == "edge") return numpy::clip(position, number(0), number(n - 1));
  if (mode == "wrap") return numpy::remainder(position, number(n));
  if (mode == "symmetric") {  // ... 1 0 0 1 2 2 1 ...
    const Array place = numpy::remainder(position, number(2 * n));
    return lax::min(place, lax::sub(number(2 * n - 1), place));
  }
  // reflect: ... 2 1 0 1 2 1 0 ...
  const Dim period = maximum(1, 2 * (n - 1));
  const Array place = numpy::remainder(position, number(period));
  return lax::min(place, lax::sub(number(period), place));
}

}  // namespace

Array numpy::pad(Operand array, const PadWidth& pad_width, const std::string& mode,
                 Operand constant_values) {
  const std::vector<PadWidth::Pair> widths = pad_width.of(array.ndim(), "pad");
  for (const auto& [before, after] : widths)
    if (less_equal(0, before) == false || less_equal(0, after) == false)
      throw ValueError(
          "pad: the pad width (" + before.to_string() + ", " + after.to_string() + ") is negative",
          "give widths >= 0, and slice to shorten");
  if (mode == "constant") {
    if (constant_values.ndim() != 0)
      throw ShapeError(
          "pad: constant_values of shape (" + constant_values.shape().to_string() + ")",
          "give one number");
    std::vector<lax::Padding> padding;
    for (const auto& [before, after] : widths) padding.push_back({before, after, 0});
    return lax::pad(array, astype(constant_values, array.dtype()), padding);
  }
  if (mode != "edge" && mode != "reflect" && mode != "symmetric" && mode != "wrap")
    throw ValueError("pad: mode is '" + mode + "'",
                     "choose 'constant', 'edge', 'reflect', 'symmetric' or 'wrap'");
  Array result = array;
  for (int axis = 0; axis < array.ndim(); ++axis) {
    const auto& [before, after] = widths[axis];
    if (before == Dim(0) && after == Dim(0)) continue;
    const Dim n = array.shape(axis);
    if (n == Dim(0))
      throw ValueError("pad: axis " + std::to_string(axis) + " has no elements to pad with",
                       "use mode 'constant'");
    result = take(result, shown_index(n, widths[axis], mode), axis, "clip");
  }
  return result;
}

namespace {

[[maybe_unused]] const FunctionInfo* const catalogue[] = {
    function("numpy", "flip(m, axis=None)", "m in reverse order along axes (None: all).",
             &numpy::flip),
    function("numpy", "flipud(m)", "m in reverse order along axis 0.", &numpy::flipud),
    function("numpy", "fliplr(m)", "m in reverse order along axis 1.", &numpy::fliplr),
    function("numpy", "rot90(m, k=1, axes=(0, 1))",
             "m turned by k right angles from the first axis to the second.", &numpy::rot90),
    function("numpy", "roll(a, shift, axis=None)",
             "Elements shifted along axes, those that leave at one end coming back at the other; "
             "None: in a row.",
             &numpy::roll),
    function("numpy", "pad(array, pad_width, mode='constant', constant_values=0)",
             "array with elements before and after along axes: a constant, its edge, its "
             "reflection without ('reflect') or with "
             "('symmetric') the edge, or itself again ('wrap'). Widths: a number, a pair, or a "
             "pair for each axis.",
             &numpy::pad),
};

}  // namespace
}  // namespace plait
