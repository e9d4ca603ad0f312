// Decompositions of matrices: the primitives, and the functions of plait::lax::linalg under JAX's
// names. Matrices are the last two axes; axes before them are a batch. dtypes are float32, float64,
// complex64 and complex128. Not part of primitives.h.
//
// NaN in a matrix gives NaN in its result, and leaves the other matrices of the batch alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/primitives.h>

namespace plait {

extern const Primitive cholesky_p, triangular_solve_p, lu_p, det_p, qr_p, eigh_p, svd_p, pinv_p,
    pivots_to_permutation_p;

namespace lax::linalg {

// The lower triangular L of A = L L^H, whose upper triangle is zero. Only the lower triangle of x
// is read; symmetrize_input reads (x + x^H) / 2 instead, so that gradients are symmetric. NaN where
// a matrix is not positive definite.
Array cholesky(Operand x, bool symmetrize_input = true);

// The X of op(a) X = b (left_side) or X op(a) = b, where op transposes, conjugates, or both. Only
// the lower or upper triangle of a is read, and unit_diagonal assumes a diagonal of ones. The batch
// axes of a and b are equal.
Array triangular_solve(Operand a, Operand b, bool left_side = false, bool lower = false,
                       bool transpose_a = false, bool conjugate_a = false,
                       bool unit_diagonal = false);

// x[permutation] = L U by partial pivoting: lu holds U, and below its diagonal L, whose diagonal is
// 1. pivots[i] is the row that row i was exchanged with. Both are int32.
struct LU {
  Array lu, pivots, permutation;
};
LU lu(Operand x);

struct QR {
  Array q, r;
};
// By Householder reflections; x is m by n. full_matrices: q is m by m and r m by n; otherwise q is
// m by k and r k by n, for k = min(m, n).
QR qr(Operand x, bool full_matrices = true);

struct Eigh {
  Array v, w;
};
// Eigenvalues w of Hermitian matrices, in ascending order, and orthonormal eigenvectors, the
// columns of v. Only the lower (or upper) triangle of x is read; symmetrize_input reads (x + x^H) /
// 2 instead.
Eigh eigh(Operand x, bool lower = true, bool symmetrize_input = true);

struct SVD {
  Array u, s, vh;
};
// x = u s vh: s real, largest first. full_matrices: u is m by m and vh n by n; otherwise m by k and
// k by n, for k = min(m, n).
SVD svd(Operand x, bool full_matrices = true);
// The permutation that results from exchanging rows pivots[..., i] and i, in order of i.
Array lu_pivots_to_permutation(Operand pivots, Dim permutation_size);

}  // namespace lax::linalg
}  // namespace plait
