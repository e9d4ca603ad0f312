// plait.lax: functions made of primitives. See lax.h; the catalogue of all of lax is
// lax_catalogue.cpp.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/lax.h>
#include <plait/functions/nn.h>
#include <plait/primitives/narrow.h>

#include <cmath>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

Array lax::square(Operand x) { return integer_pow(x, 2); }
Array lax::reciprocal(Operand x) { return numpy::reciprocal(x); }
Array lax::rsqrt(Operand x) { return div(constant(1, x), sqrt(x)); }
Array lax::sign(Operand x) { return numpy::sign(x); }
Array lax::is_finite(Operand x) { return numpy::isfinite(x); }
Array lax::exp2(Operand x) { return numpy::exp2(x); }
Array lax::cbrt(Operand x) { return numpy::cbrt(x); }
Array lax::conj(Operand x) { return numpy::conj(x); }
Array lax::logistic(Operand x) {
  if (!is_complex(x.dtype())) return nn::sigmoid(x);
  return div(filled(1, x), add(constant(1, x), exp(neg(x))));
}
Array lax::tan(Operand x) { return numpy::tan(x); }
Array lax::asin(Operand x) { return numpy::arcsin(x); }
Array lax::acos(Operand x) { return numpy::arccos(x); }
Array lax::atan(Operand x) { return numpy::arctan(x); }
Array lax::sinh(Operand x) { return numpy::sinh(x); }
Array lax::cosh(Operand x) { return numpy::cosh(x); }
Array lax::asinh(Operand x) { return numpy::arcsinh(x); }
Array lax::acosh(Operand x) { return numpy::arccosh(x); }
Array lax::atanh(Operand x) { return numpy::arctanh(x); }

Array lax::clamp(Operand min, Operand x, Operand max) {
  auto end = [&](const Array& bound) {
    return bound.aval().weak ? narrowed(bound, x.dtype(), x.aval().weak, "clamp") : bound;
  };
  return lax::min(lax::max(x, end(min)), end(max));
}

Array lax::select_n(Operand which, Operands cases) {
  if (cases.empty()) throw ValueError("select_n: no cases", "give at least one");
  if (cases.size() > 2 && is_bool(which.dtype()))
    throw DtypeError("select_n: a bool chooses among " + std::to_string(cases.size()) + " cases",
                     "choose with int32");
  if (cases.size() == 1) return cases[0];
  if (is_bool(which.dtype())) return select(which, cases[1], cases[0]);
  Array result = cases.back();
  for (std::size_t i = cases.size() - 1; i-- > 0;)
    result = select(le(which, constant(double(i), which)), cases[i], result);
  return result;
}

Array lax::broadcast(Operand operand, const Shape& sizes) {
  Shape shape = sizes;
  for (Dim dim : operand.shape()) shape.push_back(dim);
  return plait::broadcast_to(operand, shape);
}
Array lax::expand_dims(Operand array, const std::vector<int>& dimensions) {
  return numpy::expand_dims(array, dimensions);
}
Array lax::squeeze(Operand array, const std::vector<int>& dimensions) {
  return numpy::squeeze(array, dimensions);
}

Array lax::collapse(Operand operand, int start_dimension, std::optional<int> stop_dimension) {
  const int rank = operand.ndim();
  const int start = start_dimension < 0 ? start_dimension + rank : start_dimension;
  const int given = stop_dimension.value_or(rank), stop = given < 0 ? given + rank : given;
  if (start < 0 || stop > rank || start >= stop)
    throw IndexError("collapse: axes from " + std::to_string(start_dimension) + " to " +
                         std::to_string(given) + " of an array of " + std::to_string(rank) +
                         " axes",
                     "name a range of axes");
  Shape shape(operand.shape().begin(), operand.shape().begin() + start);
  Dim size = 1;
  for (int i = start; i < stop; ++i) size = size * operand.shape(i);
  shape.push_back(size);
  for (int i = stop; i < rank; ++i) shape.push_back(operand.shape(i));
  return reshape(operand, shape);
}

Array lax::broadcasted_iota(DType dtype, const Shape& shape, int dimension) {
  return iota(dtype, shape, dimension);
}
Array lax::full_like(Operand x, Operand fill_value, std::optional<DType> dtype,
                     const std::optional<Shape>& shape) {
  return numpy::full_like(x, fill_value, dtype, shape);
}

Array lax::dot(Operand lhs, Operand rhs, std::optional<DType> preferred_element_type) {
  if (lhs.ndim() < 1 || lhs.ndim() > 2 || rhs.ndim() < 1 || rhs.ndim() > 2)
    throw ShapeError("dot: operands of shapes (" + lhs.shape().to_string() + ") and (" +
                         rhs.shape().to_string() + ")",
                     "give vectors or matrices, or use dot_general");
  return dot_general(lhs, rhs, {{lhs.ndim() - 1}, {0}, {}, {}}, preferred_element_type);
}

Array lax::batch_matmul(Operand lhs, Operand rhs) {
  const int rank = lhs.ndim();
  if (rank < 2 || rhs.ndim() != rank)
    throw ShapeError("batch_matmul: operands of shapes (" + lhs.shape().to_string() + ") and (" +
                         rhs.shape().to_string() + ")",
                     "give arrays of as many axes, at least 2");
  DotDimensions d{{rank - 1}, {rank - 2}, {}, {}};
  for (int i = 0; i < rank - 2; ++i) d.lhs_batch.push_back(i), d.rhs_batch.push_back(i);
  return dot_general(lhs, rhs, d);
}

// With the running maximum M: s_i = s_(i-1) exp(M_(i-1) - M_i) + exp(x_i - M_i), and log s + M.
Array lax::iota(DType dtype, Dim size) { return iota(dtype, {size}, 0); }
Shape lax::broadcast_shapes(const std::vector<Shape>& shapes) {
  return numpy::broadcast_shapes(shapes);
}
std::pair<Array, Array> lax::sort_key_val(Operand keys, Operand values, int dimension,
                                          bool is_stable) {
  const Arrays sorted = sort(Operands{keys, values}, dimension, is_stable, 1);
  return {sorted[0], sorted[1]};
}

Array lax::cumlogsumexp(Operand operand, int axis, bool reverse) {
  const Array x = floating_only("cumlogsumexp", operand);
  const int dim = normalize_axis(axis, x.ndim(), "cumlogsumexp");
  const Dim n = x.shape(dim);
  if (n == Dim(0)) return x;
  Array m = stop_gradient(cummax(x, dim, reverse));
  m = select(lt(abs(m), constant(INFINITY, m)), m, zeros_like(m.aval()));
  const Array own = exp(sub(x, m));
  // The maximum before each position; at the first one its own, where there is no sum to carry.
  const Dim one = minimum(1, n);  // a named size may be 0
  const Array before = reverse ? concatenate({part(m, dim, one, n), part(m, dim, n - one, n)}, dim)
                               : concatenate({part(m, dim, 0, one), part(m, dim, 0, n - one)}, dim);
  return add(log(linear_recurrence(exp(sub(before, m)), own, dim, reverse)), m);
}

Array lax::conv(Operand lhs, Operand rhs, const Shape& window_strides, const WindowPadding& padding,
                std::optional<DType> preferred_element_type) {
  return conv_general_dilated(lhs, rhs, window_strides, padding, {}, {}, {}, 1, 1,
                              preferred_element_type);
}

}  // namespace plait
