// The definition of decompose: reduction to a real bidiagonal matrix, then bidiagonal_svd. A matrix
// of many more rows than columns is that of its QR decomposition before. See svd.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/QR>

#include "primitives/linalg/bidiagonalise.h"
#include "primitives/linalg/svd.h"

namespace plait::matrices {

// w becomes the product of reflections of `columns`, which begin `shift` rows below its diagonal,
// and w.
template <class T, class Taus>
void apply_reflections(const Matrix<T>& columns, const Taus& taus, std::int64_t shift,
                       Matrix<T>& w) {
  Eigen::Matrix<T, 1, Eigen::Dynamic> workspace;
  Eigen::HouseholderSequence<const Matrix<T>, const Taus>(columns, taus)
      .setLength(taus.size() - shift)
      .setShift(shift)
      .applyThisOnTheLeft(w, workspace);
}

// Overwrites x, which has at least as many rows as columns and elements of at most 1.
template <class T>
bool decompose_tall(Matrix<T>& x, Vectors vectors, Decomposed<T>& result) {
  const std::int64_t m = x.rows(), k = x.cols();
  if (m >= 16 && m > k + k / 2) {
    const Eigen::HouseholderQR<Eigen::Ref<Matrix<T>>> qr(x);
    Matrix<T> square = x.topRows(k).template triangularView<Eigen::Upper>();
    if (!decompose_tall(square, vectors == Vectors::full ? Vectors::thin : vectors, result))
      return false;
    if (vectors == Vectors::none) return true;
    Matrix<T> u = Matrix<T>::Identity(m, vectors == Vectors::full ? m : k);
    u.topLeftCorner(k, k) = result.u;
    apply_reflections<T>(x, qr.hCoeffs().conjugate().eval(), 0, u);
    result.u.swap(u);
    return true;
  }
  Eigen::VectorXd e;
  Reflections<T> reflections;
  bidiagonalise(x, result.s, e, reflections);
  Eigen::MatrixXd ub, vb;
  if (vectors != Vectors::none) {
    ub.setIdentity(k, k);
    vb.setIdentity(k, k);
  }
  if (!bidiagonal_svd(result.s, e, ub, vb)) return false;
  if (vectors == Vectors::none) return true;
  result.u.setIdentity(m, vectors == Vectors::full ? m : k);
  result.u.topLeftCorner(k, k) = ub.template cast<T>();
  apply_reflections<T>(x, reflections.left_taus, 0, result.u);
  result.v = vb.template cast<T>();
  apply_reflections<T>(reflections.right, reflections.right_taus, 1, result.v);
  return true;
}

template <class T>
void decompose_typed(const Matrix<T>& x, Vectors vectors, Decomposed<T>& result) {
  const std::int64_t m = x.rows(), n = x.cols(), k = std::min(m, n);
  const bool full = vectors == Vectors::full;
  bool found = k > 0 && x.allFinite();
  if (found) {
    const double largest = x.cwiseAbs().maxCoeff();
    const double scale =
        largest > 0 ? largest : 1;  // so that squares neither overflow nor underflow
    Matrix<T> scaled = x / scale;
    if (m < n) scaled.adjointInPlace();
    found = decompose_tall(scaled, vectors, result);
    result.s *= scale;
    if (m < n) result.u.swap(result.v);
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
