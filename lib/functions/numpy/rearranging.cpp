// plait.numpy: rearranged elements, and padding.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/numpy_pad.h>

#include "functions/functions.h"

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

std::optional<Shifts> Shifts::from_argument(const Argument& argument) {
  if (std::optional<Shape> shape = detail::as_shape(argument)) return Shifts(*shape);
  if (const auto* array = std::get_if<Array>(&argument.value)) return Shifts(*array);
  const auto* list = std::get_if<Argument::List>(&argument.value);
  if (!list) return std::nullopt;
  Shifts shifts({});
  for (const Argument& part : *list) {
    const std::optional<Shifts> one = from_argument(part);
    if (!one || one->list().size() != 1) return std::nullopt;
    shifts.shifts_.push_back(one->list()[0]);
  }
  return shifts;
}

Shifts::Shifts(const Array& shifts) {
  if (!is_integer(shifts.dtype()))
    throw DtypeError("roll: a shift of dtype " + std::string(name_of(shifts.dtype())),
                     "give integers");
  if (shifts.ndim() > 1 || !shifts.shape().is_constant())
    throw ShapeError("roll: shifts of shape (" + shifts.shape().to_string() + ")",
                     "give a scalar, or a vector with one for each axis");
  auto add = [&](const Array& shift) {
    if (shift.known_buffer())
      shifts_.emplace_back(Dim(shift.item<std::int64_t>()));
    else
      shifts_.emplace_back(shift);
  };
  if (shifts.ndim() == 0)
    add(shifts);
  else
    for (std::int64_t i = 0; i < shifts.shape(0).constant(); ++i)
      add(lax::index_in_dim(shifts, i, 0, false));
}

namespace {

// a rotated along an axis by a number that is not known.
Array rolled_by(const Array& a, const Array& shift, int axis) {
  const Dim n = a.shape(axis);
  const Array wide = size_of(shift.dtype()) < 4 ? astype(shift, default_int()) : shift;
  const Array least = lax::rem(wide, number_of(maximum(n, 1), wide.dtype()));  // above -n
  const Array from = lax::sub(counting(n), astype(least, default_int()));
  return numpy::take(a, numpy::remainder(from, number_of(maximum(n, 1), default_int())), axis,
                     "clip");
}

}  // namespace

Array numpy::roll(Operand a, const Shifts& shift, const Axes& axis) {
  const std::vector<Shifts::Shift>& shifts = shift.list();
  if (axis.is_none()) {
    if (shifts.size() != 1)
      throw ValueError("roll: several shifts without axes", "name an axis for each shift");
    return lax::reshape(roll(raveled(a), shift, 0), a.shape());
  }
  // Shifts along a repeated axis add up.
  const std::vector<int>& axes = axis.list();
  if (axes.empty() || shifts.empty()) return a;
  if (axes.size() != shifts.size() && axes.size() != 1 && shifts.size() != 1)
    throw ValueError("roll: " + std::to_string(shifts.size()) + " shifts for " +
                         std::to_string(axes.size()) + " axes",
                     "give as many of each");
  Array result = a;
  for (std::size_t i = 0; i < std::max(axes.size(), shifts.size()); ++i) {
    const int dim = normalize_axis(axes[axes.size() == 1 ? 0 : i], a.ndim(), "roll");
    const Dim n = result.shape(dim);
    if (n == Dim(0)) continue;
    const Shifts::Shift& one = shifts[shifts.size() == 1 ? 0 : i];
    if (const auto* unknown = std::get_if<Array>(&one)) {
      result = rolled_by(result, *unknown, dim);
      continue;
    }
    const Dim by = modulo(std::get<Dim>(one), n);
    if (by == Dim(0)) continue;
    const Dim cut = minimum(n - by, n);  // a named size may be 0
    result = lax::concatenate({part(result, dim, cut, n), part(result, dim, 0, cut)}, dim);
  }
  return result;
}

namespace {

// For each position of a padded axis, the index of the element that appears there.
Array shown_index(Dim n, const PadWidth::Pair& width, const std::string& mode) {
  const Array position =
      lax::sub(counting(width.first + n + width.second), number_of(width.first, default_int()));
  auto number = [](Dim dim) { return number_of(dim, default_int()); };
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

// The same, where each side shows elements once: what is on either side, and the elements between.
std::optional<Array> padded_by_parts(const Array& x, int axis, const PadWidth::Pair& width,
                                     const std::string& mode) {
  const Dim n = x.shape(axis);
  const Dim most = mode == "reflect" ? n - 1 : n;  // elements that a side shows
  const auto& [before, after] = width;
  const auto show = [&](Dim count, Dim start) {  // reversed but for "wrap"
    const Array shown = part(x, axis, start, start + count);
    return mode == "wrap" ? shown : lax::rev(shown, std::vector<int>{axis});
  };
  const auto repeated = [&](Dim count, Dim place) {
    Shape shape = x.shape();
    shape[axis] = count;
    return plait::broadcast_to(part(x, axis, place, place + 1), shape);
  };
  if (Trace::current()) return std::nullopt;  // whose sizes may be named
  if (mode != "edge" && std::max(before.constant(), after.constant()) > most.constant())
    return std::nullopt;
  const Dim skipped = mode == "reflect" ? 1 : 0;
  Arrays parts{x};
  if (!(before == Dim(0)))
    parts.insert(parts.begin(), mode == "edge"   ? repeated(before, 0)
                                : mode == "wrap" ? show(before, n - before)
                                                 : show(before, skipped));
  if (!(after == Dim(0)))
    parts.push_back(mode == "edge"   ? repeated(after, n - 1)
                    : mode == "wrap" ? show(after, 0)
                                     : show(after, n - skipped - after));
  return lax::concatenate(parts, axis);
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
    return pad(array, pad_width, mode, PadOptions());
  Array result = array;
  for (int axis = 0; axis < array.ndim(); ++axis) {
    const auto& [before, after] = widths[axis];
    if (before == Dim(0) && after == Dim(0)) continue;
    const Dim n = array.shape(axis);
    if (n == Dim(0))
      throw ValueError("pad: axis " + std::to_string(axis) + " has no elements to pad with",
                       "use mode 'constant'");
    const std::optional<Array> joined = padded_by_parts(result, axis, widths[axis], mode);
    result = joined ? *joined : take(result, shown_index(n, widths[axis], mode), axis, "clip");
  }
  return result;
}

namespace {

[[maybe_unused]] const FunctionInfo* const rearranging_functions[] = {
    function("numpy", "flip(m, axis=None)", "m in reverse order along axes (None: all).",
             &numpy::flip),
    function("numpy", "flipud(m)", "m in reverse order along axis 0.", &numpy::flipud),
    function("numpy", "fliplr(m)", "m in reverse order along axis 1.", &numpy::fliplr),
    function("numpy", "rot90(m, k=1, axes=(0, 1))",
             "m turned by k right angles from the first axis to the second.", &numpy::rot90),
    function("numpy", "roll(a, shift, axis=None)",
             "Elements shifted along axes, those that leave at one end coming back at the other; "
             "None: in a row. Shifts may be traced.",
             &numpy::roll),
};

}  // namespace
}  // namespace plait
