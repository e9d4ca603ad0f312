// The catalogue of plait.lax.linalg: the functions of primitives/linalg.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/catalogue.h>
#include <plait/functions/numpy_linalg.h>
#include <plait/primitives/linalg.h>

namespace plait {
namespace {

namespace of = lax::linalg;

[[maybe_unused]] const FunctionInfo* const linalg_functions[] = {
    function("lax.linalg", "cholesky(x, symmetrize_input=True)",
             "The lower triangular L of x = L L^H. symmetrize_input takes (x + x^H) / 2; otherwise "
             "the lower triangle is read. NaN where a matrix is not positive definite.",
             &of::cholesky),
    function("lax.linalg",
             "triangular_solve(a, b, left_side=False, lower=False, transpose_a=False, "
             "conjugate_a=False, unit_diagonal=False)",
             "The x of op(a) x = b when left_side, of x op(a) = b otherwise, for triangular a, of "
             "which the other triangle is not read. The batch axes of a and b are equal.",
             &of::triangular_solve),
    function(
        "lax.linalg", "lu(x)",
        "lu, pivots and permutation of x[permutation] = l u: u on the diagonal and above, l below "
        "it, with a diagonal of 1; row i was exchanged with row pivots[i].",
        +[](Operand x) {
          const auto [lu, pivots, permutation] = of::lu(x);
          return std::tuple{lu, pivots, permutation};
        }),
    function("lax.linalg", "lu_pivots_to_permutation(pivots, permutation_size)",
             "The permutation that exchanging rows i and pivots[..., i], in order of i, makes.",
             &of::lu_pivots_to_permutation),
    function(
        "lax.linalg", "qr(x, full_matrices=True)",
        "q and r of x = q r: a square q when full_matrices, which has no derivative when x has "
        "more rows than columns; otherwise q has min(m, n) columns.",
        +[](Operand x, bool full_matrices) {
          const auto [q, r] = of::qr(x, full_matrices);
          return std::pair{q, r};
        }),
    function(
        "lax.linalg", "svd(x, full_matrices=True, compute_uv=True)",
        "u, s and vh of x = u diag(s) vh, s largest first; s alone unless compute_uv.",
        +[](Operand x, bool full_matrices, bool compute_uv) {
          if (!compute_uv) return Argument(numpy::linalg::svdvals(x));
          const auto [u, s, vh] = of::svd(x, full_matrices);
          return Argument(Argument::List{u, s, vh});
        }),
    function(
        "lax.linalg", "eigh(x, lower=True, symmetrize_input=True)",
        "v and w of x v = v diag(w) for Hermitian matrices: eigenvectors as columns, eigenvalues "
        "least first. symmetrize_input takes (x + x^H) / 2; otherwise one triangle is read.",
        +[](Operand x, bool lower, bool symmetrize_input) {
          const auto [v, w] = of::eigh(x, lower, symmetrize_input);
          return std::pair{v, w};
        }),
};

}  // namespace
}  // namespace plait
