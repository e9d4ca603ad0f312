// Reduction of a matrix of at least as many rows as columns to an upper bidiagonal one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "primitives/linalg/matrices.h"

namespace plait::matrices {

// a = U B V^H for the real B with diagonal d and e above it. U and V are products of reflections
// I - tau w w^H: those of U have their w in the columns of a, from below the diagonal on, behind an
// element 1 on it; those of V in the columns of `right`, one row further down.
template <class T>
struct Reflections {
  Matrix<T> right;
  Eigen::Matrix<T, Eigen::Dynamic, 1> left_taus, right_taus;
};
template <class T>
void bidiagonalise(Matrix<T>& a, Eigen::VectorXd& d, Eigen::VectorXd& e,
                   Reflections<T>& reflections);
extern template void bidiagonalise(Matrix<double>&, Eigen::VectorXd&, Eigen::VectorXd&,
                                   Reflections<double>&);
extern template void bidiagonalise(Matrix<complex128>&, Eigen::VectorXd&, Eigen::VectorXd&,
                                   Reflections<complex128>&);

}  // namespace plait::matrices
