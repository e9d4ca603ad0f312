// The definition of decompose, by Jacobi's method. See svd.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/SVD>

#include "ops/svd.h"

namespace plait::matrices {

template <class T>
void decompose_typed(const Matrix<T>& x, Vectors vectors, Decomposed<T>& result) {
  const std::int64_t m = x.rows(), n = x.cols(), k = std::min(m, n);
  const bool full = vectors == Vectors::full;
  result.s.setConstant(k, NAN);
  if (vectors != Vectors::none) {
    result.u.setIdentity(m, full ? m : k);
    result.v.setIdentity(n, full ? n : k);
  }
  if (k == 0) return;
  bool found = false;
  if (x.allFinite()) {
    unsigned options = 0;
    if (vectors != Vectors::none)
      options = full ? Eigen::ComputeFullU | Eigen::ComputeFullV
                     : Eigen::ComputeThinU | Eigen::ComputeThinV;
    const Eigen::JacobiSVD<Matrix<T>> svd(x, options);
    found = svd.info() == Eigen::Success;
    if (found) {
      result.s = svd.singularValues();
      if (vectors != Vectors::none) {
        result.u = svd.matrixU();
        result.v = svd.matrixV();
      }
    }
  }
  if (vectors == Vectors::none) return;
  if (!found) {
    result.u.setConstant(not_a_number<T>());
    result.v.setConstant(not_a_number<T>());
    return;
  }
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
