// Functions of plait::lax::linalg that are made of several primitives, under JAX's names:
// reductions by Householder reflections and products of reflections. decompositions.h and linalg.h
// in primitives have those that are one primitive.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/decompositions.h>

namespace plait::lax::linalg {

// Reflections H_i = I - tau_i v_i v_i^H, packed as in LAPACK: v_i below the last element that is
// kept of column i, without its leading 1.
struct Packed {
  Array a, taus;
};
// x = H_0 H_1 ... r: r on the diagonal and above, the reflections below.
Packed geqrf(Operand x);
// a = Q h Q^H for Q = H_0 H_1 ...: h on the first subdiagonal and above, the reflections below.
Packed hessenberg(Operand a);

struct Tridiagonal {
  Array a, d, e, taus;
};
// The same for a Hermitian matrix, of which one triangle is read: its h has the diagonal d and e
// beside it. With lower, reflections are below the subdiagonal; otherwise above the superdiagonal,
// and Q = ... H_1 H_0.
Tridiagonal tridiagonal(Operand a, bool lower = true);

// The first columns of H_0 H_1 ..., as many as a has.
Array householder_product(Operand a, Operand taus);
// Q c, Q^H c (transpose), c Q or c Q^H for Q = H_0 H_1 ..., without Q.
Array ormqr(Operand a, Operand taus, Operand c, bool left = true, bool transpose = false);

// alpha a a^T + beta c.
Array symmetric_product(Operand a_matrix, Operand c_matrix, double alpha = 1.0, double beta = 0.0,
                        bool symmetrize_output = false);

struct QDWH {
  Array u, h, num_iters, is_converged;
};
// x = u h of matrices of at least as many rows as columns: see polar.
QDWH qdwh(Operand x, std::optional<int> max_iterations = {}, std::optional<double> eps = {});

}  // namespace plait::lax::linalg
