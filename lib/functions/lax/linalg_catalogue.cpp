// The catalogue of plait.lax.linalg: the functions of primitives/linalg.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/catalogue.h>
#include <plait/functions/numpy_linalg.h>
#include <plait/primitives/decompositions.h>

#include "functions/functions.h"
#include "primitives/linalg/matrices.h"

namespace plait {
namespace {

namespace of = lax::linalg;

// Those that subset_by_index asks for, from the first to before the last, of the values or vectors
// along an axis.
using Subset = std::optional<std::vector<int>>;
Array subset_of(const Array& x, int axis, const Subset& subset) {
  if (!subset) return x;
  const Dim size = x.shape(axis);
  if (subset->size() != 2 || (*subset)[0] < 0 || (*subset)[1] < (*subset)[0] ||
      !less_equal(Dim((*subset)[1]), size).value_or(true))
    throw ValueError("subset_by_index does not fit " + size.to_string() + " values",
                     "give the first index, and the one behind the last");
  return functions::part(x, axis, (*subset)[0], (*subset)[1]);
}

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
        "lax.linalg", "qr(x, *, pivoting=False, full_matrices=True, use_magma=None!)",
        "q and r of x = q r: a square q when full_matrices, which has no derivative when x has "
        "more rows than columns; otherwise q has min(m, n) columns. pivoting: also the order p "
        "(int32) of the columns for which the diagonal of r descends, x[..., p] = q r.",
        +[](Operand x, bool pivoting, bool full_matrices) {
          if (!pivoting) {
            const auto [q, r] = of::qr(x, full_matrices);
            return Argument(Argument::List{q, r});
          }
          const Array order = of::pivoted_order(lax::stop_gradient(x));
          const auto [q, r] =
              of::qr(matrices::transposed(matrices::take_rows(matrices::transposed(x), order)),
                     full_matrices);
          return Argument(Argument::List{q, r, order});
        }),
    function(
        "lax.linalg",
        "svd(x, full_matrices=True, compute_uv=True, subset_by_index=None, algorithm=None!)",
        "u, s and vh of x = u diag(s) vh, s largest first; s alone unless compute_uv. "
        "subset_by_index: those from the first index to before the last.",
        +[](Operand x, bool full_matrices, bool compute_uv, const Subset& subset_by_index) {
          const int last = x.ndim() - 1;
          if (!compute_uv)
            return Argument(subset_of(numpy::linalg::svdvals(x), last - 1, subset_by_index));
          const auto [u, s, vh] = of::svd(x, full_matrices && !subset_by_index);
          return Argument(Argument::List{subset_of(u, last, subset_by_index),
                                         subset_of(s, last - 1, subset_by_index),
                                         subset_of(vh, last - 1, subset_by_index)});
        }),
    function(
        "lax.linalg",
        "eigh(x, lower=True, symmetrize_input=True, sort_eigenvalues=True!, subset_by_index=None, "
        "implementation=None!)",
        "v and w of x v = v diag(w) for Hermitian matrices: eigenvectors as columns, eigenvalues "
        "least first. symmetrize_input takes (x + x^H) / 2; otherwise one triangle is read. "
        "subset_by_index: those from the first index to before the last.",
        +[](Operand x, bool lower, bool symmetrize_input, const Subset& subset_by_index) {
          const auto [v, w] = of::eigh(x, lower, symmetrize_input);
          const int last = v.ndim() - 1;
          return std::pair{subset_of(v, last, subset_by_index),
                           subset_of(w, last - 1, subset_by_index)};
        }),
};

}  // namespace
}  // namespace plait
