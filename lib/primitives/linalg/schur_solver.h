// Schur's form of one general matrix. In a file of its own because Eigen's part is slow to compile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "primitives/linalg/matrices.h"

namespace plait::matrices {

// x = z t z^T with a quasi-triangular t. False, and NaN everywhere, for an x that is not finite, or
// where the iteration does not converge.
bool real_schur(const Matrix<double>& x, bool compute_vectors, Matrix<double>& t,
                Matrix<double>& z);
// x = z t z^H with an upper triangular t. That of a real matrix comes from its real form: the
// number of each diagonal element's pair, or 0 where it is real, is in pairs (1: the first of two,
// 2: the second); a complex one has none.
bool complex_schur(const Matrix<double>& x, bool compute_vectors, Matrix<complex128>& t,
                   Matrix<complex128>& z, std::vector<int>* pairs = nullptr);
bool complex_schur(const Matrix<complex128>& x, bool compute_vectors, Matrix<complex128>& t,
                   Matrix<complex128>& z, std::vector<int>* pairs = nullptr);

}  // namespace plait::matrices
