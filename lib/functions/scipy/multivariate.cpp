// plait.scipy.stats: distributions of vectors.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/numpy_linalg.h>
#include <plait/primitives/linalg.h>

#include "functions/scipy/stats.h"

namespace plait {
using namespace functions;  // NOLINT

namespace scipy {

// --- Dirichlet: the product of x_i^(alpha_i - 1) Gamma(alpha_0) / Gamma(alpha_i) -----------------

// The first axis of x is that of alpha, whose last element may be left out.
Array stats::dirichlet::logpdf(Operand x, Operand alpha) {
  Arrays all{x, alpha};
  promote_dtypes(all, "logpdf");
  for (Array& array : all) array = floating_only("logpdf", array);
  const Array a = all[1];
  Array p = all[0];
  if (a.ndim() != 1 || p.ndim() == 0 || !(p.shape(0) == a.shape(0) || p.shape(0) + 1 == a.shape(0)))
    throw ShapeError("dirichlet.logpdf: x of shape (" + p.shape().to_string() +
                         ") and alpha of shape (" + a.shape().to_string() + ")",
                     "give a vector alpha, and x whose first axis has its size, or one less");
  if (!(p.shape(0) == a.shape(0)))
    p = numpy::concatenate({p, 1.0 - numpy::sum(p, {0}, {}, true)}, 0);
  Shape column(std::size_t(p.ndim()), 1);
  column[0] = a.shape(0);
  const Array powers = lax::reshape(a, column);
  const Array norm = lax::lgamma(numpy::sum(a)) - numpy::sum(lax::lgamma(a));
  const double tolerance = size_of(p.dtype()) == 8 ? 1e-9 : 1e-5;
  const Array is_simplex = numpy::all(p >= 0, {0}) & (lax::abs(numpy::sum(p, {0}) - 1) < tolerance);
  return within(is_simplex, numpy::sum(special::xlogy(powers - 1, p), {0}) + norm, -INFINITY);
}
Array stats::dirichlet::pdf(Operand x, Operand alpha) { return lax::exp(logpdf(x, alpha)); }

// --- multinomial ---------------------------------------------------------------------------------

Array stats::multinomial::logpmf(Operand x, Operand n, Operand p) {
  Arrays all{x, n, p};
  promote_dtypes(all, "logpmf");
  for (Array& array : all) array = floating_only("logpmf", to_inexact(array));
  const Array terms = special::xlogy(all[0], all[2]) - lax::lgamma(all[0] + 1);
  const Array result = lax::lgamma(all[1] + 1) + numpy::sum(terms, {-1});
  return numpy::where(numpy::equal(numpy::sum(all[0], {-1}), all[1]), result, -INFINITY);
}
Array stats::multinomial::pmf(Operand x, Operand n, Operand p) { return lax::exp(logpmf(x, n, p)); }

// --- multivariate normal -------------------------------------------------------------------------

// With cov = L L^T and L y = x - mean: -(|y|^2 + n log(2 pi)) / 2 - sum of log L_ii.
Array stats::multivariate_normal::logpdf(Operand x, Operand mean, Operand cov,
                                         const std::optional<bool>& allow_singular) {
  if (allow_singular)
    throw ValueError("multivariate_normal.logpdf: allow_singular is not supported",
                     "leave it out, and give a covariance that is positive definite");
  Arrays all{x, mean, cov};
  promote_dtypes(all, "logpdf");
  for (Array& array : all) array = floating_only("logpdf", to_inexact(array));
  const Array centre = all[1], matrix = all[2];
  if (centre.ndim() == 0) {
    if (matrix.ndim() != 0)
      throw ShapeError(
          "multivariate_normal.logpdf: a mean that is a number, and a covariance of "
          "shape (" +
              matrix.shape().to_string() + ")",
          "give a vector as the mean, or a number as the covariance");
    return norm::logpdf(all[0], centre, lax::sqrt(matrix));
  }
  const Dim n = centre.shape().back();
  if (matrix.ndim() < 2 || !(matrix.shape().back() == n) ||
      !(matrix.shape(matrix.ndim() - 2) == n) || all[0].ndim() == 0 ||
      !(all[0].shape().back() == n))
    throw ShapeError("multivariate_normal.logpdf: x of shape (" + all[0].shape().to_string() +
                         "), mean of shape (" + centre.shape().to_string() +
                         ") and covariance of shape (" + matrix.shape().to_string() + ")",
                     "give vectors of n elements and an n x n matrix");
  const Array factor = numpy::linalg::cholesky(matrix);
  const Array distance = all[0] - centre;
  Array y;
  if (factor.ndim() == 2) {  // one system with all vectors as columns
    const Array columns = numpy::reshape(distance, {-1, n});
    const Array solved =
        lax::linalg::triangular_solve(factor, numpy::matrix_transpose(columns), true, true);
    y = numpy::reshape(numpy::matrix_transpose(solved), distance.shape());
  } else {
    Shape batch = factor.shape();
    batch.resize(batch.size() - 1);
    const Shape shapes[] = {distance.shape(), batch};
    Shape vectors = plait::broadcast_shapes(shapes, "logpdf");
    Shape matrices = vectors;
    matrices.push_back(n);
    const Array columns = numpy::expand_dims(numpy::broadcast_to(distance, vectors), {-1});
    y = numpy::squeeze(
        lax::linalg::triangular_solve(numpy::broadcast_to(factor, matrices), columns, true, true),
        {-1});
  }
  const Array diagonal = numpy::diagonal(factor, 0, -2, -1);
  const Array size = numpy::sum(y * y, {-1}) + number_of(n, y.dtype()) * std::log(2 * M_PI);
  return size * -0.5 - numpy::sum(lax::log(diagonal), {-1});
}
Array stats::multivariate_normal::pdf(Operand x, Operand mean, Operand cov) {
  return lax::exp(logpdf(x, mean, cov));
}

}  // namespace scipy
}  // namespace plait
