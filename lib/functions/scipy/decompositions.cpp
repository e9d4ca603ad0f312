// plait.scipy.linalg: decompositions of matrices under SciPy's names.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/lax.h>
#include <plait/functions/lax_linalg.h>
#include <plait/functions/scipy_matrices.h>

#include "functions/functions.h"
#include "primitives/linalg/decompositions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace scipy::linalg {
namespace {

using namespace matrices;  // NOLINT

Array matrices_for(std::string_view name, const Array& x) {
  const Array a = to_inexact(x);
  require_matrices(name, std::span(&a.aval(), 1));
  return a;
}

}  // namespace

std::pair<Array, Array> schur(Operand a, const std::string& output) {
  if (output != "real" && output != "complex")
    throw ValueError("schur: output is '" + output + "'", "give 'real' or 'complex'");
  const Array x = matrices_for("schur", a);
  const auto [t, z] = lax::linalg::schur(x, output == "complex" || is_complex(x.dtype()));
  return {t, z};
}

std::pair<Array, Array> rsf2csf(Operand T, Operand Z) {
  Arrays both{matrices_for("rsf2csf", T), matrices_for("rsf2csf", Z)};
  promote_dtypes(both, "rsf2csf");
  if (!(both[0].shape() == both[1].shape()))
    throw ShapeError("rsf2csf: matrices of shapes (" + T.shape().to_string() + ") and (" +
                         Z.shape().to_string() + ")",
                     "give both results of schur");
  const auto [t, q] = lax::linalg::schur(both[0], true);
  return {t, matmul(as_complex(both[1]), q)};
}

std::pair<Array, Array> hessenberg(Operand a) {
  const auto [packed, taus] = lax::linalg::hessenberg(matrices_for("hessenberg", a));
  const Array h = upper(packed, -1);
  const Dim n = rows_of(packed.aval());
  if (n.is_constant() && n.constant() < 2)
    return {h, plait::broadcast_to(as_weak_as(h, numpy::eye(n, {}, 0, h.dtype())), h.shape())};
  // Without the first row and the last column, the reflections are those of a QR factorization.
  const int rank = packed.ndim();
  const Array reflections = part(part(packed, rank - 2, 1, n), rank - 1, 0, n - 1);
  const Array inner = lax::linalg::householder_product(reflections, taus);
  std::vector<lax::Padding> padding(std::size_t(rank), lax::Padding{0, 0, 0});
  padding[std::size_t(rank - 2)].low = padding[std::size_t(rank - 1)].low = 1;
  const Array q = lax::pad(inner, constant(0, inner), padding);
  const Array corner = lax::bitwise_and(
      lax::eq(lax::iota(DType::int32, q.shape(), rank - 2), Array::literal(0, DType::int32)),
      lax::eq(lax::iota(DType::int32, q.shape(), rank - 1), Array::literal(0, DType::int32)));
  return {h, lax::select(corner, filled(1, q), q)};
}

std::pair<Array, Array> polar(Operand a, const std::string& side, const std::string& method,
                              std::optional<double> eps, std::optional<int> max_iterations) {
  if (side != "right" && side != "left")
    throw ValueError("polar: side is '" + side + "'", "give 'right' or 'left'");
  if (method != "qdwh" && method != "svd")
    throw ValueError("polar: method is '" + method + "'", "give 'qdwh' or 'svd'");
  const Array x = matrices_for("polar", a);
  const bool is_tall = less_equal(columns_of(x.aval()), rows_of(x.aval())).value_or(true);
  Array u;
  if (method == "svd") {
    const auto [left, s, right] = lax::linalg::svd(x, false);
    u = matmul(left, right);
  } else {
    u = lax::linalg::polar(is_tall ? x : adjoint(x), max_iterations, eps).unitary;
    if (!is_tall) u = adjoint(u);
  }
  const Array p = side == "right" ? matmul(adjoint(u), x) : matmul(x, adjoint(u));
  return {u, symmetrized(p)};
}

std::pair<Array, Array> eigh(Operand a, const std::optional<Array>& b, bool lower, int type) {
  Arrays both{matrices_for("eigh", a)};
  if (b) both.push_back(matrices_for("eigh", *b));
  promote_dtypes(both, "eigh");
  const Array x = hermitian_of(both[0], lower);
  if (!b) {
    const auto [v, w] = lax::linalg::eigh(x, true, false);
    return {w, v};
  }
  if (!(both[1].shape() == x.shape()))
    throw ShapeError("eigh: matrices of shapes (" + a.shape().to_string() + ") and (" +
                         b->shape().to_string() + ")",
                     "give b the shape of a");
  if (type < 1 || type > 3)
    throw ValueError("eigh: type is " + std::to_string(type), "give 1, 2 or 3");
  using lax::linalg::triangular_solve;
  const Array l = lax::linalg::cholesky(hermitian_of(both[1], lower), false);
  // b = L L^H. Type 1: L^-1 a L^-H y = w y, x = L^-H y; 2 and 3: L^H a L y = w y, with x = L^-H y
  // or L y.
  const Array inner =
      type == 1 ? triangular_solve(l, triangular_solve(l, x, true, true), false, true, true, true)
                : matmul(matmul(adjoint(l), x), l);
  const auto [y, w] = lax::linalg::eigh(inner, true, true);
  return {w, type == 3 ? matmul(l, y) : triangular_solve(l, y, true, true, true, true)};
}

std::pair<Array, Array> eigh_tridiagonal(Operand d, Operand e) {
  Arrays both{floating_only("eigh_tridiagonal", to_inexact(d)),
              floating_only("eigh_tridiagonal", to_inexact(e))};
  promote_dtypes(both, "eigh_tridiagonal");
  const Array &diagonal = both[0], &beside = both[1];
  const int last = diagonal.ndim() - 1;
  if (last < 0 || beside.ndim() != last + 1 || !(diagonal.shape(last) == beside.shape(last) + 1))
    throw ShapeError("eigh_tridiagonal: d of shape (" + d.shape().to_string() +
                         ") and e of shape (" + e.shape().to_string() + ")",
                     "give one element fewer in e");
  // The lower triangle, which is all that is read.
  std::vector<lax::Padding> padding(std::size_t(last + 1), lax::Padding{0, 0, 0});
  padding.back() = {0, 1, 0};
  const Array padded = lax::pad(beside, constant(0, beside), padding);
  const Dim n = diagonal.shape(last);
  const auto along = [&](const Array& vector, int k) {
    const Array places = eye(n, n, vector.dtype());
    const Array moved = k == 0 ? places : numpy::eye(n, {}, k, vector.dtype());
    Shape shape = vector.shape();
    shape.push_back(n);
    return lax::mul(plait::broadcast_to(moved, shape), plait::broadcast_to(as_rows(vector), shape));
  };
  const auto [v, w] =
      lax::linalg::eigh(lax::add(along(diagonal, 0), along(padded, -1)), true, false);
  return {w, v};
}

std::tuple<Array, Array, Array> svd(Operand a, bool full_matrices) {
  return numpy::linalg::svd(a, full_matrices);
}

PivotedQR qr(Operand a, const std::string& mode, bool pivoting) {
  if (mode != "full" && mode != "r" && mode != "economic")
    throw ValueError("qr: mode is '" + mode + "'", "give 'full', 'r' or 'economic'");
  Array x = matrices_for("qr", a);
  std::optional<Array> order;
  if (pivoting) {
    order = lax::linalg::pivoted_order(lax::stop_gradient(x));
    x = transposed(take_rows(transposed(x), *order));
  }
  if (mode != "r") {
    const auto [q, r] = lax::linalg::qr(x, mode == "full");
    return {q, r, order};
  }
  // r of "full" has rows of zeros that q's derivative is not needed for.
  const auto [q, r] = lax::linalg::qr(x, false);
  std::vector<lax::Padding> padding(std::size_t(x.ndim()), lax::Padding{0, 0, 0});
  padding[std::size_t(x.ndim() - 2)].high = rows_of(x.aval()) - rows_of(r.aval());
  return {q, lax::pad(r, constant(0, r), padding), order};
}

PivotedQR qr_multiply(Operand a, Operand c, const std::string& mode, bool pivoting,
                      bool conjugate) {
  if (mode != "left" && mode != "right")
    throw ValueError("qr_multiply: mode is '" + mode + "'", "give 'left' or 'right'");
  PivotedQR result = qr(a, "economic", pivoting);
  const Array q = conjugate && is_complex(result.q.dtype()) ? Array(lax::conj(result.q)) : result.q;
  const bool left = mode == "left", is_vector = c.ndim() == 1;
  const Array matrix = is_vector ? numpy::expand_dims(c, {left ? -1 : 0}) : Array(c);
  result.q = left ? numpy::matmul(q, matrix) : numpy::matmul(matrix, q);
  if (is_vector) result.q = numpy::squeeze(result.q, left ? -1 : -2);
  return result;
}

namespace {

Argument listed(const PivotedQR& result, bool with_q) {
  Argument::List list;
  if (with_q) list.push_back(result.q);
  list.push_back(result.r);
  if (result.p) list.push_back(*result.p);
  if (list.size() == 1) return Argument(result.r);
  return Argument(std::move(list));
}

[[maybe_unused]] const FunctionInfo* const decomposition_functions[] = {
    function("scipy.linalg", "schur(a, output='real')",
             "t and z of a = z t z^H: unitary z and upper triangular t. Those of real matrices are "
             "real for output 'real', with blocks of two rows on the diagonal of t for pairs of "
             "complex eigenvalues; these have no derivative, and 'complex' does.",
             &schur),
    function("scipy.linalg", "rsf2csf(T, Z, check_finite=True!)",
             "The complex Schur form, upper triangular, of a real one.", &rsf2csf),
    function(
        "scipy.linalg", "hessenberg(a, *, calc_q=False, overwrite_a=False!, check_finite=True!)",
        "h of a = q h q^H, zero below the first subdiagonal, and with calc_q the unitary q.",
        +[](Operand a, bool calc_q) {
          const auto [h, q] = hessenberg(a);
          return calc_q ? Argument(Argument::List{h, q}) : Argument(h);
        }),
    function("scipy.linalg",
             "polar(a, side='right', *, method='qdwh', eps=None, max_iterations=None)",
             "u and p of a = u p, or a = p u for side 'left': orthonormal columns (or rows) of u, "
             "and positive semidefinite p. method is 'qdwh' or 'svd'; derivatives of 'svd' need "
             "singular values that differ.",
             &polar),
    function(
        "scipy.linalg",
        "svd(a, full_matrices=True, compute_uv=True, overwrite_a=False!, check_finite=True!, "
        "lapack_driver='gesdd'!)",
        "The same as numpy.linalg.svd.",
        +[](Operand a, bool full_matrices, bool compute_uv) {
          if (!compute_uv) return Argument(numpy::linalg::svdvals(a));
          const auto [u, s, vh] = svd(a, full_matrices);
          return Argument(Argument::List{u, s, vh});
        }),
    function(
        "scipy.linalg",
        "eigh(a, b=None, lower=True, eigvals_only=False, overwrite_a=False!, overwrite_b=False!, "
        "turbo=True!, eigvals=None!, type=1, check_finite=True!)",
        "Eigenvalues, least first, and eigenvectors, as columns, of Hermitian matrices, of which "
        "one triangle is read; with a positive definite b, of a v = w b v (type 1), a b v = w v "
        "(2) or b a v = w v (3). Eigenvalues alone for eigvals_only.",
        +[](Operand a, const std::optional<Array>& b, bool lower, bool eigvals_only, int type) {
          const auto [w, v] = eigh(a, b, lower, type);
          return eigvals_only ? Argument(w) : Argument(Argument::List{w, v});
        }),
    function(
        "scipy.linalg",
        "eigh_tridiagonal(d, e, *, eigvals_only=False, select='a', select_range=None, tol=None!, "
        "key=None!)",
        "Eigenvalues, least first, and eigenvectors of the symmetric matrix with diagonal d and e "
        "beside it. select 'i': those of indices select_range[0] to select_range[1]. Eigenvalues "
        "alone for eigvals_only.",
        +[](Operand d, Operand e, bool eigvals_only, const std::string& select,
            const std::optional<std::vector<int>>& select_range) {
          if (select != "a" && select != "i")
            throw ValueError("eigh_tridiagonal: select is '" + select + "'", "give 'a' or 'i'");
          if ((select == "i") != bool(select_range) || (select_range && select_range->size() != 2))
            throw ValueError("eigh_tridiagonal: select 'i' goes with a select_range",
                             "give the first and the last index");
          auto [w, v] = eigh_tridiagonal(d, e);
          if (select_range) {
            const int first = (*select_range)[0], last = (*select_range)[1];
            const Dim n = w.shape(w.ndim() - 1);
            if (first < 0 || last < first || less_equal(n, Dim(last)).value_or(false))
              throw ValueError("eigh_tridiagonal: select_range is " + std::to_string(first) +
                                   " to " + std::to_string(last) + " of " + n.to_string() +
                                   " eigenvalues",
                               "give indices in order");
            w = part(w, w.ndim() - 1, first, last + 1);
            v = part(v, v.ndim() - 1, first, last + 1);
          }
          return eigvals_only ? Argument(w) : Argument(Argument::List{w, v});
        }),
    function(
        "scipy.linalg",
        "qr(a, overwrite_a=False!, lwork=None!, mode='full', pivoting=False, check_finite=True!)",
        "q and r of a = q r: a square q for mode 'full', min(m, n) columns for 'economic', r alone "
        "for 'r'. pivoting: also the order p (int32) of the columns for which the diagonal of r "
        "descends, a[..., p] = q r.",
        +[](Operand a, const std::string& mode, bool pivoting) {
          return listed(qr(a, mode, pivoting), mode != "r");
        }),
    function(
        "scipy.linalg",
        "qr_multiply(a, c, mode='right', pivoting=False, conjugate=False, overwrite_a=False!, "
        "overwrite_c=False!)",
        "c q, or q c for mode 'left', and r, for a = q r with min(m, n) columns of q; conjugate "
        "takes conj(q). A vector c is a row, or a column. pivoting: also the order of the columns.",
        +[](Operand a, Operand c, const std::string& mode, bool pivoting, bool conjugate) {
          return listed(qr_multiply(a, c, mode, pivoting, conjugate), true);
        }),
};

}  // namespace
}  // namespace scipy::linalg
}  // namespace plait
