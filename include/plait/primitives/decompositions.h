// Decompositions of general matrices: the primitives, and functions of plait::lax::linalg under
// JAX's names. Matrices are the last two axes; axes before them are a batch. dtypes are float32,
// float64, complex64 and complex128. Not part of primitives.h.
//
// NaN in a matrix gives NaN in its result, and leaves the other matrices of the batch alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/linalg.h>

namespace plait {

extern const Primitive eig_p, schur_p, triangular_sylvester_p, sqrtm_p, polar_p,
    tridiagonal_solve_p, cholesky_update_p, pivoted_order_p;

namespace lax::linalg {

// Eigenvalues w of square matrices, in ascending order of their real parts, then of their imaginary
// parts; then left eigenvectors, columns of vl with vl^H x = w vl^H, and right ones, with
// x vr = w vr, where they are asked for. All are complex. Vectors have length 1, and their first
// element that is at least half as large as the largest is real and positive.
Arrays eig(Operand x, bool compute_left_eigenvectors = true,
           bool compute_right_eigenvectors = true);

struct Schur {
  Array t, z;
};
// x = z t z^H: unitary z, upper triangular t. Real matrices that are not made complex have a real
// t with blocks of two rows on the diagonal for pairs of complex eigenvalues; it has no derivative.
Schur schur(Operand x, bool complex);

// The x of A x = b for stacks of matrices that are zero off three diagonals: A[i, i-1] = dl[i],
// A[i, i] = d[i], A[i, i+1] = du[i]. By elimination with partial pivoting.
Array tridiagonal_solve(Operand dl, Operand d, Operand du, Operand b);

// The upper triangular R' of R'^H R' = R^H R + w w^H, in O(n^2) operations.
Array cholesky_update(Operand r_matrix, Operand w_vector);

// The complex square root whose eigenvalues have real parts that are not negative.
Array sqrtm(Operand x);

struct Polar {
  Array unitary, num_iters, is_converged;
};
// The unitary factor of x = u h, for matrices of at least as many rows as columns, by the
// dynamically weighted Halley iteration: Nakatsukasa, Bai and Gygi, "Optimizing Halley's iteration
// for computing the matrix polar decomposition" (2010). Then for each matrix the steps taken
// (int32), and whether it has converged. A negative eps is the dtype's rounding.
Polar polar(Operand x, std::optional<int> max_iterations = {}, std::optional<double> eps = {});

// The order of columns in which each has the largest part that is orthogonal to those before it
// (int32): that of a QR factorization with column pivoting.
Array pivoted_order(Operand x);

}  // namespace lax::linalg
}  // namespace plait
