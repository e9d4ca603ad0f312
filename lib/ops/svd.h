// The singular value decomposition of one matrix, which svd and pinv share. It is compiled in
// svd_real.cpp and svd_complex.cpp, because Eigen's part takes long to compile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/matrices.h"

namespace plait::matrices {

template <class T>
struct Decomposed {
  Matrix<T> u, v;  // x = u diag(s) v^H
  Eigen::VectorXd s;
};

enum class Vectors { none, thin, full };

// NaN everywhere for an x that is not finite. Of every column of u the first element that is at
// least half as large as the largest is real and positive.
void decompose(const Matrix<double>& x, Vectors vectors, Decomposed<double>& result);
void decompose(const Matrix<complex128>& x, Vectors vectors, Decomposed<complex128>& result);

// B = ub diag(d) vb^T for the upper bidiagonal B of diagonal d and superdiagonal e: d becomes the
// singular values, largest first. ub and vb, identities at first, are not computed where they have
// no elements. False when the iteration does not converge.
bool bidiagonal_svd(Eigen::VectorXd& d, Eigen::VectorXd& e, Eigen::MatrixXd& ub,
                    Eigen::MatrixXd& vb);

}  // namespace plait::matrices
