// plait.random: vectors and matrices, and transformed normal and uniform numbers.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/numpy_linalg.h>

#include "functions/random/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {
using OptionalDType = std::optional<DType>;

Array with_key(const Array& keys, int index) { return lax::index_in_dim(keys, index, 0, false); }
}  // namespace

// mean + A z for normal z, where A A^T = cov.
Array random::multivariate_normal(Operand key, Operand mean, Operand cov,
                                  const std::optional<Shape>& shape, OptionalDType dtype,
                                  const std::string& method) {
  require_key("multivariate_normal", key);
  const DType to = float_dtype("multivariate_normal", dtype);
  if (mean.ndim() < 1 || cov.ndim() < 2 || !(cov.shape().back() == mean.shape().back()) ||
      !(cov.shape(cov.ndim() - 2) == mean.shape().back()))
    throw ShapeError("multivariate_normal: a mean of shape (" + mean.shape().to_string() +
                         ") and a covariance of shape (" + cov.shape().to_string() + ")",
                     "give a vector of n elements and an n x n matrix");
  const Array centre = astype(mean, to), matrix = astype(cov, to);
  Array factor;
  if (method == "cholesky") {
    factor = numpy::linalg::cholesky(matrix);
  } else if (method == "eigh") {
    const auto [values, vectors] = numpy::linalg::eigh(matrix);
    factor = vectors * numpy::expand_dims(lax::sqrt(values), {-2});
  } else if (method == "svd") {
    const auto [u, s, vh] = numpy::linalg::svd(matrix);
    factor = u * numpy::expand_dims(lax::sqrt(s), {-2});
  } else {
    throw ValueError("multivariate_normal: method '" + method + "'",
                     "give 'cholesky', 'eigh' or 'svd'");
  }
  const Shape batches[] = {Shape(mean.shape().begin(), mean.shape().end() - 1),
                           Shape(cov.shape().begin(), cov.shape().end() - 2)};
  Shape sizes = shape.value_or(plait::broadcast_shapes(batches, "multivariate_normal"));
  sizes.push_back(mean.shape().back());
  const Array z = numpy::expand_dims(normal(key, sizes, to), {-1});
  return centre + numpy::squeeze(numpy::matmul(factor, z), {-1});
}

// Q of the QR decomposition of a normal matrix, with the signs that make R's diagonal positive
// (Mezzadri, How to generate random matrices from the classical compact groups, 2007).
Array random::orthogonal(Operand key, Dim n, const Shape& shape, OptionalDType dtype,
                         const std::optional<Dim>& m) {
  require_key("orthogonal", key);
  const DType to = dtype.value_or(default_float());
  if (!is_inexact(to))
    throw DtypeError("orthogonal: dtype " + std::string(name_of(to)) + " is not float or complex",
                     "ask for a float or complex dtype");
  const Dim columns = m.value_or(n);
  const bool is_wide = !less_equal(columns, n).value_or(true);
  Shape sizes = shape;
  sizes.push_back(is_wide ? columns : n);
  sizes.push_back(is_wide ? n : columns);
  const auto [q, r] = numpy::linalg::qr(normal(key, sizes, to));
  const Array signs = numpy::sign(numpy::diagonal(r, 0, -2, -1));
  const Array result = q * numpy::expand_dims(signs, {-2});
  return is_wide ? numpy::matrix_transpose(result) : result;
}

Array random::maxwell(Operand key, const Shape& shape, OptionalDType dtype) {
  const DType to = float_dtype("maxwell", dtype);
  Shape vectors = shape;
  vectors.push_back(3);
  const Array z = normal(key, vectors, to);
  return lax::sqrt(numpy::sum(z * z, {-1}));
}
Array random::double_sided_maxwell(Operand key, Operand loc, Operand scale, const Shape& shape,
                                   OptionalDType dtype) {
  require_key("double_sided_maxwell", key);
  const DType to = float_dtype("double_sided_maxwell", dtype);
  const Shape parameters[] = {loc.shape(), scale.shape()};
  const Shape own = plait::broadcast_shapes(parameters, "double_sided_maxwell");
  Shape sizes = shape.empty() ? own : shape;
  for (const Dim size : own) sizes.push_back(size);
  const Array keys = lax::random_split(key, {2});
  const Array lengths = maxwell(with_key(keys, 0), sizes, to);
  const Array signs = rademacher(with_key(keys, 1), sizes, to);
  return signs * lengths * astype(scale, to) + astype(loc, to);
}
Array random::triangular(Operand key, Operand left, Operand mode, Operand right,
                         const std::optional<Shape>& shape, OptionalDType dtype) {
  const DType to = float_dtype("triangular", dtype);
  const Shape sizes = shape_or("triangular", shape, {left, mode, right});
  const Array low = to_shape_of("triangular", astype(left, to), sizes),
              top = to_shape_of("triangular", astype(mode, to), sizes),
              high = to_shape_of("triangular", astype(right, to), sizes);
  const Array u = uniform(key, sizes, to), width = high - low;
  const Array rising = low + lax::sqrt(u * width * (top - low));
  const Array falling = high - lax::sqrt((1.0 - u) * width * (high - top));
  return numpy::where(u < (top - low) / width, rising, falling);
}
// The smaller root of a quadratic equation, or the other one (Michael, Schucany and Haas,
// Generating random variates using transformations with multiple roots, 1976).
Array random::wald(Operand key, Operand mean, const std::optional<Shape>& shape,
                   OptionalDType dtype) {
  require_key("wald", key);
  const DType to = float_dtype("wald", dtype);
  const Shape sizes = shape_or("wald", shape, {mean});
  const Array mu = plait::broadcast_to(to_shape_of("wald", astype(mean, to), sizes), sizes);
  const Array keys = lax::random_split(key, {2});
  const Array v = normal(with_key(keys, 0), sizes, to), z = uniform(with_key(keys, 1), sizes, to);
  const Array y = v * v, square = mu * mu;
  const Array root = lax::sqrt(mu * 4 * y + square * (y * y));
  const Array x = mu + square * y / 2 - mu / 2 * root;
  return numpy::where(z <= mu / (mu + x), x, square / x);
}

namespace {

[[maybe_unused]] const FunctionInfo* const vectors_functions[] = {
    function("random",
             "multivariate_normal(key, mean, cov, shape=None, dtype=None, method='cholesky')",
             "Normal vectors of a mean and a covariance matrix, whose leading axes broadcast to "
             "shape; method is 'cholesky', 'eigh' or 'svd'.",
             &random::multivariate_normal),
    function("random", "orthogonal(key, n, shape=(), dtype=None, m=None)",
             "Evenly distributed orthogonal matrices, or unitary ones of a complex dtype; n x m "
             "with orthonormal rows or columns.",
             &random::orthogonal),
    function("random", "maxwell(key, shape=(), dtype=None)",
             "Lengths of normal vectors in space: Maxwell's distribution.", &random::maxwell),
    function("random", "double_sided_maxwell(key, loc, scale, shape=(), dtype=None)",
             "Numbers of Maxwell's distribution with random signs, times scale, plus loc.",
             &random::double_sided_maxwell),
    function("random", "triangular(key, left, mode, right, shape=None, dtype=None)",
             "Numbers between left and right whose density rises up to mode and falls beyond.",
             &random::triangular),
    function("random", "wald(key, mean, shape=None, dtype=None)",
             "Numbers of Wald's distribution, the inverse normal one, of scale 1.", &random::wald),
};

}  // namespace
}  // namespace plait
