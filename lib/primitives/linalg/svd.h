// The singular value decomposition of one matrix, shared by svd and pinv. Compiled in svd_real.cpp
// and svd_complex.cpp, because Eigen's part is slow to compile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "primitives/linalg/matrices.h"

namespace plait::matrices {

template <class T>
struct Decomposed {
  Matrix<T> u, v;  // x = u diag(s) v^H
  Eigen::VectorXd s;
};

enum class Vectors { none, thin, full };

// NaN everywhere for an x that is not finite. In every column of u, the first element that is at
// least half as large as the largest is real and positive.
void decompose(const Matrix<double>& x, Vectors vectors, Decomposed<double>& result);
void decompose(const Matrix<complex128>& x, Vectors vectors, Decomposed<complex128>& result);

// B = ub diag(d) vb^T for the upper bidiagonal B of diagonal d and superdiagonal e: d becomes the
// singular values, largest first. ub and vb start as identities, and are skipped where they are
// empty. False when the iteration does not converge.
bool bidiagonal_svd(Eigen::VectorXd& d, Eigen::VectorXd& e, Eigen::MatrixXd& ub,
                    Eigen::MatrixXd& vb);
// The same by QR steps, which need more time where there are many rows.
bool bidiagonal_by_rotations(Eigen::VectorXd& d, Eigen::VectorXd& e, Eigen::MatrixXd& ub,
                             Eigen::MatrixXd& vb);

}  // namespace plait::matrices
