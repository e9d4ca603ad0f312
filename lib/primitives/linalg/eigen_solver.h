// The eigenvalues of one Hermitian matrix. In a file of its own because Eigen's part is slow to
// compile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "primitives/linalg/matrices.h"

namespace plait::matrices {

// Decomposes the matrix whose lower triangle is that of x, with eigenvalues in ascending order.
// Vectors are columns; the first element of each that is at least half as large as the largest is
// real and positive. NaN everywhere for an x that is not finite.
void eigen_of_hermitian(const Matrix<double>& x, bool compute_vectors, Eigen::VectorXd& values,
                        Matrix<double>& vectors);
void eigen_of_hermitian(const Matrix<complex128>& x, bool compute_vectors, Eigen::VectorXd& values,
                        Matrix<complex128>& vectors);

}  // namespace plait::matrices
