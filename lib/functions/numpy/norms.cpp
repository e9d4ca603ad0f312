// plait.numpy.linalg: norms, and products of matrices.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/numpy_linalg.h>

#include <cmath>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace numpy::linalg {

std::optional<NormOrder> NormOrder::from_argument(const Argument& argument) {
  if (argument.is_none()) return NormOrder();
  if (const auto* word = std::get_if<std::string>(&argument.value)) return NormOrder(*word);
  if (std::optional<double> number = plait::detail::as_double(argument)) return NormOrder(*number);
  return std::nullopt;
}

}  // namespace numpy::linalg

namespace {

using numpy::linalg::NormOrder;

// |x|^2, real.
Array square_of(const Array& x) {
  if (!is_complex(x.dtype())) return lax::mul(x, x);
  const Array re = lax::real(x), im = lax::imag(x);
  return lax::add(lax::mul(re, re), lax::mul(im, im));
}

// Of all elements it is a product of vectors.
Array sum_of_squares(const Array& x, const Axes& axes, bool keepdims) {
  const bool is_of_all = axes.is_none() || int(axes.of(x.ndim(), "norm").size()) == x.ndim();
  if (!is_of_all || is_complex(x.dtype()) || x.ndim() == 0)
    return numpy::sum(square_of(x), axes, {}, keepdims);
  const Array row = raveled(x), sum = numpy::dot(row, row);
  return keepdims ? lax::reshape(sum, Shape(x.ndim(), 1)) : sum;
}

Array root_of_squares(const Array& x, const Axes& axes, bool keepdims) {
  return lax::sqrt(sum_of_squares(x, axes, keepdims));
}

[[noreturn]] void refuse(const NormOrder& ord, const char* what) {
  throw ValueError(std::string("norm: ord ") +
                       (ord.number() ? std::to_string(*ord.number()) : "'" + ord.word() + "'") +
                       " is no norm of " + what,
                   "see the documentation of numpy.linalg.norm");
}

Array norm_of_vectors(const Array& x, const NormOrder& ord, const Axes& axes, bool keepdims) {
  if (ord.is_none()) return root_of_squares(x, axes, keepdims);
  if (!ord.number()) refuse(ord, "vectors");
  const double p = *ord.number();
  if (p == 2) return root_of_squares(x, axes, keepdims);
  const Array size = lax::abs(x);
  if (p == INFINITY) return numpy::max(size, axes, keepdims);
  if (p == -INFINITY) return numpy::min(size, axes, keepdims);
  if (p == 1) return numpy::sum(size, axes, {}, keepdims);
  if (p == 0) return numpy::sum(astype(truth(x), size.dtype()), axes, {}, keepdims);
  const Array powers = numpy::sum(numpy::power(size, p), axes, {}, keepdims);
  return numpy::power(powers, 1 / p);
}

// The largest (2) or smallest (-2) singular value, or their sum ("nuc").
Array norm_of_singular_values(const Array& x, const NormOrder& ord, int row, int column,
                              bool keepdims) {
  const Array s = numpy::linalg::svdvals(numpy::moveaxis(x, {row, column}, {-2, -1}));
  const int last = s.ndim() - 1;
  const Array value = !ord.number()       ? lax::reduce_sum(s, std::vector<int>{last})
                      : *ord.number() > 0 ? numpy::max(s, last)
                                          : numpy::min(s, last);
  return keepdims ? with_axes(value, x.shape(), std::vector<int>{row, column}) : value;
}

Array norm_of_matrices(const Array& x, const NormOrder& ord, int row, int column, bool keepdims) {
  if (ord.is_none() || ord.word() == "fro") return root_of_squares(x, {row, column}, keepdims);
  const double p = ord.number().value_or(0);
  if (ord.word() == "nuc" || std::abs(p) == 2)
    return norm_of_singular_values(x, ord, row, column, keepdims);
  if (std::abs(p) != 1 && !std::isinf(p)) refuse(ord, "matrices");
  const bool columns = std::abs(p) == 1;  // the largest sum over a column
  const Array sums = numpy::sum(lax::abs(x), columns ? row : column, {}, true);
  const Axes both{row, column};
  return p > 0 ? numpy::max(sums, both, keepdims) : numpy::min(sums, both, keepdims);
}

}  // namespace

Array numpy::linalg::norm(Operand x, const NormOrder& ord, const Axes& axis, bool keepdims) {
  const Array a = to_inexact(x);
  if (axis.is_none()) {
    if (ord.is_none()) return root_of_squares(a, {}, keepdims);
    if (a.ndim() == 1) return norm_of_vectors(a, ord, 0, keepdims);
    if (a.ndim() == 2) return norm_of_matrices(a, ord, 0, 1, keepdims);
    throw ShapeError("norm: ord is given for an array of shape (" + a.shape().to_string() + ")",
                     "name one axis of vectors or two of matrices");
  }
  const std::vector<int>& axes = axis.list();
  if (axes.size() == 1) return norm_of_vectors(a, ord, axis, keepdims);
  if (axes.size() != 2)
    throw ValueError("norm: " + std::to_string(axes.size()) + " axes", "name one or two");
  axis.of(a.ndim(), "norm");  // throws for a repeated axis
  return norm_of_matrices(a, ord, normalize_axis(axes[0], a.ndim(), "norm"),
                          normalize_axis(axes[1], a.ndim(), "norm"), keepdims);
}

Array numpy::linalg::matrix_norm(Operand x, bool keepdims, const NormOrder& ord) {
  if (x.ndim() < 2)
    throw ShapeError("matrix_norm: an array of shape (" + x.shape().to_string() + ")",
                     "give matrices");
  return norm_of_matrices(to_inexact(x), ord, x.ndim() - 2, x.ndim() - 1, keepdims);
}

Array numpy::linalg::vector_norm(Operand x, const Axes& axis, bool keepdims, const NormOrder& ord) {
  return norm_of_vectors(to_inexact(x), ord, axis, keepdims);
}

Array numpy::linalg::diagonal(Operand x, int offset) { return numpy::diagonal(x, offset, -2, -1); }
Array numpy::linalg::trace(Operand x, int offset, OptionalDType dtype) {
  return numpy::trace(x, offset, -2, -1, dtype);
}

Array numpy::linalg::matrix_power(Operand a, int n) {
  if (a.ndim() < 2 || !(a.shape(a.ndim() - 1) == a.shape(a.ndim() - 2)))
    throw ShapeError("matrix_power: an array of shape (" + a.shape().to_string() + ")",
                     "give square matrices");
  if (n < 0) return matrix_power(inv(a), -n);
  if (n == 0) return plait::broadcast_to(identity(a.shape(a.ndim() - 1), a.dtype()), a.shape());
  std::optional<Array> result;
  for (Array square = a;; square = matmul(square, square)) {
    if (n & 1) result = result ? matmul(*result, square) : square;
    if ((n >>= 1) == 0) return *result;
  }
}

namespace {

namespace of = numpy::linalg;

[[maybe_unused]] const FunctionInfo* const norms_functions[] = {
    function("numpy.linalg", "norm(x, ord=None, axis=None, keepdims=False)",
             "The norm of vectors along an axis, of matrices along two, or of all elements (None). "
             "ord of vectors: None or 2, any number p for (sum |x|^p)^(1/p), inf, -inf, 0 for the "
             "count of elements that are not 0; of matrices: None or 'fro', 1 and -1 for sums of "
             "columns, inf and -inf of rows, 2 and -2 for the largest and the smallest singular "
             "value, 'nuc' for their sum. Integers are float32.",
             &of::norm),
    function("numpy.linalg", "matrix_norm(x, *, keepdims=False, ord='fro')",
             "norm of the matrices in the last two axes.", &of::matrix_norm),
    function("numpy.linalg", "vector_norm(x, *, axis=None, keepdims=False, ord=2)",
             "norm over axes (None: all), whose elements are one vector.", &of::vector_norm),
    function("numpy.linalg", "diagonal(x, *, offset=0)",
             "A diagonal of the last two axes, which a last axis replaces.", &of::diagonal),
    function("numpy.linalg", "trace(x, *, offset=0, dtype=None)",
             "The sum of a diagonal of the last two axes.", &of::trace),
    function("numpy.linalg", "matrix_power(a, n)",
             "Square matrices times themselves n times, by squaring; their inverses for n < 0.",
             &of::matrix_power),
    function(
        "numpy.linalg", "matmul(x1, x2)", "The same as numpy.matmul.",
        +[](Operand x1, Operand x2) { return numpy::matmul(x1, x2); }),
    function("numpy.linalg", "matrix_transpose(x)", "x with its last two axes exchanged.",
             &numpy::matrix_transpose),
    function(
        "numpy.linalg", "vecdot(x1, x2, *, axis=-1)", "The same as numpy.vecdot.",
        +[](Operand x1, Operand x2, int axis) { return numpy::vecdot(x1, x2, axis); }),
    function("numpy.linalg", "outer(x1, x2)", "The products of all elements of two vectors.",
             &numpy::outer),
    function("numpy.linalg", "cross(x1, x2, *, axis=-1)",
             "The vector product along an axis of size 3.", &numpy::cross),
};

}  // namespace
}  // namespace plait
