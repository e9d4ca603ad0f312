// The catalogue of plait.lax.linalg: the functions of primitives/decompositions.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/catalogue.h>
#include <plait/primitives/decompositions.h>

#include "functions/functions.h"

namespace plait {
namespace {

namespace of = lax::linalg;

// b as matrices, and vectors of their batch and dtype.
Array tridiagonal_solve(Operand dl, Operand d, Operand du, Operand b) {
  Arrays all{functions::to_inexact(dl), functions::to_inexact(d), functions::to_inexact(du),
             functions::to_inexact(b)};
  promote_dtypes(all, "tridiagonal_solve");
  return of::tridiagonal_solve(all[0], all[1], all[2], all[3]);
}

Array cholesky_update(Operand r_matrix, Operand w_vector) {
  Arrays both{functions::to_inexact(r_matrix), functions::to_inexact(w_vector)};
  promote_dtypes(both, "cholesky_update");
  return of::cholesky_update(both[0], both[1]);
}

[[maybe_unused]] const FunctionInfo* const decomposition_functions[] = {
    function("lax.linalg",
             "eig(x, *, compute_left_eigenvectors=True, compute_right_eigenvectors=True, "
             "enable_eigvec_derivs=True!, implementation=None!, use_magma=None!)",
             "w, vl and vr: eigenvalues of square matrices, left eigenvectors (vl^H x = w vl^H) "
             "and right ones (x vr = w vr), as columns, where they are asked for; all complex. "
             "Eigenvalues are in ascending order of their real parts, then of their imaginary "
             "parts. Vectors have length 1, and their first element that is at least half as large "
             "as the largest is real and positive. In derivatives of eigenvectors, equal "
             "eigenvalues drop their term.",
             &of::eig),
    function(
        "lax.linalg",
        "schur(x, *, compute_schur_vectors=True, sort_eig_vals=False!, select_callable=None!)",
        "t and z of x = z t z^H: unitary z and upper triangular t; t alone unless "
        "compute_schur_vectors. Those of real matrices are real, with blocks of two rows on the "
        "diagonal of t for pairs of complex eigenvalues; these have no derivative.",
        +[](Operand x, bool compute_schur_vectors) {
          const Array a = functions::to_inexact(x);
          const auto [t, z] = of::schur(a, is_complex(a.dtype()));
          return compute_schur_vectors ? Argument(Argument::List{t, z}) : Argument(t);
        }),
    function("lax.linalg", "tridiagonal_solve(dl, d, du, b, *, perturb_singular=False!)",
             "The x of a x = b for matrices b and a that is zero but for a[i, i - 1] = dl[i], "
             "a[i, i] = d[i] and a[i, i + 1] = du[i], by elimination with partial pivoting. dl[0] "
             "and the last du are not read. Batch axes are equal.",
             &tridiagonal_solve),
    function("lax.linalg", "cholesky_update(r_matrix, w_vector)",
             "The upper triangular r of r^H r = r_matrix^H r_matrix + w w^H for upper triangular "
             "r_matrix, with O(n^2) operations.",
             &cholesky_update),
};

}  // namespace
}  // namespace plait
