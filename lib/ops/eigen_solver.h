// The eigenvalues of one Hermitian matrix. Apart from eigh.cpp because Eigen's part takes long to
// compile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/matrices.h"

namespace plait::matrices {

// Of the matrix whose lower triangle x has, least first; vectors are columns, of which the first
// element that is at least half as large as the largest is real and positive. NaN everywhere for an
// x that is not finite.
void eigen_of_hermitian(const Matrix<double>& x, bool compute_vectors, Eigen::VectorXd& values,
                        Matrix<double>& vectors);
void eigen_of_hermitian(const Matrix<complex128>& x, bool compute_vectors, Eigen::VectorXd& values,
                        Matrix<complex128>& vectors);

}  // namespace plait::matrices
