// The definition of decompose: Householder bidiagonalization by Eigen, then the real bidiagonal
// matrix by bidiagonal_svd. Eigen's own decompositions are slow (Jacobi's method) or compile for
// half a minute (divide and conquer). See svd.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/SVD>

#include "primitives/linalg/svd.h"

namespace plait::matrices {

// x has at least as many rows as columns.
template <class T>
bool decompose_tall(const Matrix<T>& x, Vectors vectors, Decomposed<T>& result) {
  const std::int64_t m = x.rows(), k = x.cols();
  const double scale = x.cwiseAbs().maxCoeff();  // so that squares neither overflow nor underflow
  Matrix<T> scaled = scale > 0 ? Matrix<T>(x / scale) : x;
  Eigen::internal::UpperBidiagonalization<Matrix<T>> bidiagonal(scaled);
  Eigen::VectorXd e = Eigen::VectorXd::Zero(k);
  auto band = bidiagonal.bidiagonal();
  result.s = band.diagonal();
  if (k > 1) e.head(k - 1) = band.template diagonal<1>();
  Eigen::MatrixXd ub, vb;
  if (vectors != Vectors::none) {
    ub.setIdentity(k, k);
    vb.setIdentity(k, k);
  }
  if (!bidiagonal_svd(result.s, e, ub, vb)) return false;
  result.s *= scale > 0 ? scale : 1.0;
  if (vectors == Vectors::none) return true;
  Eigen::Matrix<T, 1, Eigen::Dynamic> workspace;
  result.u.setIdentity(m, vectors == Vectors::full ? m : k);
  result.u.topLeftCorner(k, k) = ub.template cast<T>();
  bidiagonal.householderU().applyThisOnTheLeft(result.u, workspace);
  result.v = vb.template cast<T>();
  bidiagonal.householderV().applyThisOnTheLeft(result.v, workspace);
  return true;
}

template <class T>
void decompose_typed(const Matrix<T>& x, Vectors vectors, Decomposed<T>& result) {
  const std::int64_t m = x.rows(), n = x.cols(), k = std::min(m, n);
  const bool full = vectors == Vectors::full;
  bool found = k > 0 && x.allFinite();
  if (found && m >= n) {
    found = decompose_tall(x, vectors, result);
  } else if (found) {
    found = decompose_tall(Matrix<T>(x.adjoint()), vectors, result);
    result.u.swap(result.v);
  }
  if (!found) {
    result.s.setConstant(k, NAN);
    result.u.setIdentity(m, full ? m : k);
    result.v.setIdentity(n, full ? n : k);
    if (k == 0) return;
    result.u.setConstant(not_a_number<T>());
    result.v.setConstant(not_a_number<T>());
    return;
  }
  if (vectors == Vectors::none) return;
  for (std::int64_t column = 0; column < std::max(result.u.cols(), result.v.cols()); ++column) {
    T phase = T(1);
    if (column < result.u.cols()) {
      phase = phase_of<T>(result.u.col(column));
      result.u.col(column) *= phase;
    }
    if (column < result.v.cols()) {
      if (column >= k) phase = phase_of<T>(result.v.col(column));
      result.v.col(column) *= phase;
    }
  }
}

}  // namespace plait::matrices
