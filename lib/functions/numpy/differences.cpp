// plait.numpy: finite differences, phases without jumps.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/numpy_analysis.h>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

// The derivative along an axis from values at places whose distances are a scalar, or a vector.
class AxisGradient {
 public:
  AxisGradient(const Array& f, int axis, const Array& steps, int edge_order)
      : f_(f), axis_(axis), steps_(steps), edge_order_(edge_order), n_(f.shape(axis)) {
    // A named size may be too small only when it is bound.
    const std::optional<bool> is_short = less_equal(n_, edge_order);
    by_place_ = !is_short && edge_order == 1 && steps.ndim() == 0;
    if (is_short != false && !by_place_)
      throw ShapeError("gradient: axis " + std::to_string(axis) + " of size " + n_.to_string(),
                       "give at least edge_order + 1 = " + std::to_string(edge_order + 1) +
                           " elements along it" +
                           (is_short ? "" : ", or for a named size equal distances"));
  }
  Array run() const {
    if (by_place_) return between_neighbours();
    Arrays parts{edge(Side::first)};
    if (!(n_ == Dim(2))) parts.push_back(inside());
    parts.push_back(edge(Side::last));
    return lax::concatenate(parts, axis_);
  }

 private:
  enum class Side { first, last };

  Array values(Dim start, Dim limit) const { return part(f_, axis_, start, limit); }
  // Distances start .. limit - 1, for rows along the axis.
  Array distances(Dim start, Dim limit) const {
    if (steps_.ndim() == 0) return steps_;
    Shape shape(f_.ndim(), 1);
    shape[axis_] = limit - start;
    return lax::reshape(part(steps_, 0, start, limit), shape);
  }
  // The difference of the neighbours that there are, over their distance.
  Array between_neighbours() const {
    const Array place = counting(n_), one = Array::literal(1, default_int());
    const Array before = lax::max(lax::sub(place, one), Array::literal(0, default_int()));
    const Array after = numpy::minimum(lax::add(place, one), number_of(n_ - 1, default_int()));
    Shape along(f_.ndim(), 1);
    along[axis_] = n_;
    const Array steps = astype(lax::reshape(numpy::subtract(after, before), along), f_.dtype());
    const Array rise =
        lax::sub(numpy::take(f_, after, axis_, "clip"), numpy::take(f_, before, axis_, "clip"));
    return numpy::divide(rise, numpy::multiply(steps, steps_));
  }
  Array inside() const {
    const Array before = values(0, n_ - 2), here = values(1, n_ - 1), after = values(2, n_);
    if (steps_.ndim() == 0) return numpy::divide(after - before, 2.0 * steps_);
    // Second order for distances d to the left and e to the right.
    const Array d = distances(0, n_ - 2), e = distances(1, n_ - 1);
    const Array a = (e * -1.0) / (d * (d + e)), b = (e - d) / (d * e), c = d / (e * (d + e));
    return a * before + b * here + c * after;
  }
  Array edge(Side side) const {
    const bool is_first = side == Side::first;
    auto value = [&](int i) {  // the ith from the edge
      return is_first ? values(i, i + 1) : values(n_ - 1 - i, n_ - i);
    };
    auto distance = [&](int i) {
      const Dim count = n_ - 1;
      return is_first ? distances(i, i + 1) : distances(count - 1 - i, count - i);
    };
    const Array d = distance(0);
    if (edge_order_ == 1) {
      const Array rise = value(1) - value(0);
      return (is_first ? rise : rise * -1.0) / d;
    }
    const Array e = distance(1);
    const Array slope = value(0) * ((2.0 * d + e) * -1.0 / (d * (d + e))) +
                        value(1) * ((d + e) / (d * e)) - value(2) * (d / (e * (d + e)));
    return is_first ? slope : slope * -1.0;
  }

  const Array f_;
  const int axis_;
  const Array steps_;
  const int edge_order_;
  const Dim n_;
  bool by_place_ = false;
};

}  // namespace

std::vector<Array> numpy::gradient(Operand f, Operands varargs,
                                   const std::optional<std::vector<int>>& axis, int edge_order) {
  if (edge_order != 1 && edge_order != 2)
    throw ValueError("gradient: edge_order is " + std::to_string(edge_order), "choose 1 or 2");
  const Array values = to_inexact(f);
  std::vector<int> axes = axis ? *axis : Axes().of(f.ndim(), "gradient");
  for (int& each : axes) each = normalize_axis(each, f.ndim(), "gradient");
  if (varargs.size() > 1 && varargs.size() != axes.size())
    throw ValueError("gradient: " + std::to_string(varargs.size()) + " distances for " +
                         std::to_string(axes.size()) + " axes",
                     "give none, one for all, or one for each");
  std::vector<Array> result;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Array steps = varargs.empty() ? Array(1.0) : varargs[varargs.size() == 1 ? 0 : i];
    if (steps.ndim() > 0) {
      if (steps.ndim() != 1 || !(steps.shape(0) == f.shape(axes[i])))
        throw ShapeError("gradient: places of shape (" + steps.shape().to_string() +
                             ") for an axis of size " + f.shape(axes[i]).to_string(),
                         "give a distance, or a vector with the place of each element");
      steps = diff(steps);
    }
    result.push_back(AxisGradient(values, axes[i], steps, edge_order).run());
  }
  return result;
}

Array numpy::ediff1d(Operand ary, const OptionalArray& to_end, const OptionalArray& to_begin) {
  Arrays parts;
  auto add = [&](const OptionalArray& more) {
    if (more) parts.push_back(astype(raveled(*more), ary.dtype()));
  };
  add(to_begin);
  parts.push_back(diff(raveled(ary)));
  add(to_end);
  return parts.size() == 1 ? parts[0] : concatenate(parts);
}

Array numpy::unwrap(Operand p, const OptionalArray& discont, int axis, Operand period) {
  const int dim = normalize_axis(axis, p.ndim(), "unwrap");
  if (is_complex(p.dtype())) floating_only("unwrap", p);
  Array x = p;
  if (!is_integer(x.dtype()) || !is_integer(period.dtype())) x = to_inexact(x);
  const Dim n = x.shape(dim);
  if (less_equal(n, 1) == true) return x;
  const Array steps = diff(x, 1, dim);
  const bool whole = is_integer(x.dtype());
  const Array half = whole ? floor_divide(period, 2) : divide(period, 2.0);
  // The step of the same phase from -half to half; half itself keeps its sign.
  Array near = subtract(remainder(add(steps, half), period), half);
  const Array is_low = logical_and(equal(near, negative(half)), greater(steps, 0));
  const Array even = whole ? equal(remainder(period, 2), 0) : Array(true);
  near = where(logical_and(is_low, even), half, near);
  const Array jump = discont ? Array(*discont) : half;
  const Array correction = where(less(abs(steps), jump), constant(0, near), subtract(near, steps));
  const Dim one = minimum(1, n);  // a named size may be 0
  const Array rest = add(part(x, dim, one, n), cumsum(correction, dim));
  return concatenate({part(x, dim, 0, one), rest}, dim);
}

namespace {

Argument gradient_of(Operand f, Operands varargs, const std::optional<std::vector<int>>& axis,
                     std::optional<int> edge_order) {
  std::vector<Array> all = numpy::gradient(f, varargs, axis, edge_order.value_or(1));
  return all.size() == 1 ? Argument(all[0]) : detail::give(all);
}

[[maybe_unused]] const FunctionInfo* const difference_functions[] = {
    function("numpy", "gradient(f, *varargs, axis=None, edge_order=1)",
             "Derivatives along axes (None: all) by central differences, one-sided of order 1 or 2 "
             "at the edges: an array, or one for each of several axes. varargs: the distance of "
             "elements, 1 by default, or a vector of their places; one for all axes or for each.",
             &gradient_of),
    function("numpy", "ediff1d(ary, to_end=None, to_begin=None)",
             "Differences of neighbours of the elements in a row, with others before and after.",
             &numpy::ediff1d),
    function("numpy", "unwrap(p, discont=None, axis=-1, period=6.283185307179586)",
             "Phases along an axis with multiples of the period added, so that no step is larger "
             "than half of it; steps below discont, which is half the period by default, stay.",
             &numpy::unwrap),
};

}  // namespace
}  // namespace plait
