// plait.lax.linalg: reductions by Householder reflections, one column at a time, and products of
// reflections as matrix products.
// SPDX-License-Identifier: Apache-2.0
#include <plait/control/control.h>
#include <plait/functions/lax_linalg.h>
#include <plait/functions/numpy_linalg.h>
#include <plait/primitives/narrow.h>

#include "functions/functions.h"
#include "primitives/linalg/decompositions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

using namespace matrices;  // NOLINT
using lax::linalg::Packed;

// Of a column: a number for each matrix.
Array total(const Array& x) {
  return lax::reduce_sum(x, std::vector<int>{x.ndim() - 2, x.ndim() - 1});
}

Array only(const Array& keep, const Array& x) {
  return lax::select(plait::broadcast_to(keep, x.shape()), x, lax::zeros_like(x.aval()));
}

// The real part of a number as a number of x's dtype.
Array real_as(const Array& number, const Array& x) { return astype(number, x.dtype()); }

// What one reflection does: the column v with its 1, the factor tau, and what is left of the
// column.
struct Reflection {
  Array v, tau, beta;
};

// H^H x = beta e for the reflection H that starts in a row: beta = -sign(Re alpha) |x|,
// tau = (beta - alpha) / beta, v = x / (alpha - beta), as LAPACK's larfg. A column of zeros below a
// real alpha stays as it is, with tau = 0. Where nothing is done, divisors are 1, so that
// derivatives are finite.
Reflection reflection_of(const Array& column, const Array& is_first, const Array& is_below) {
  const Array tail = only(is_below, column), alpha = total(only(is_first, column));
  const bool complex = is_complex(column.dtype());
  const Array real = complex ? Array(lax::real(alpha)) : alpha;
  const auto squares = [&](const Array& x) {
    const Array re = complex ? Array(lax::real(x)) : x;
    Array sum = lax::mul(re, re);
    if (complex) sum = lax::add(sum, lax::mul(lax::imag(x), lax::imag(x)));
    return sum;
  };
  const Array beside = total(squares(tail));
  Array outside = beside;
  if (complex) outside = lax::add(outside, lax::mul(lax::imag(alpha), lax::imag(alpha)));
  const Array idle = lax::eq(outside, constant(0, outside));
  const Array square = lax::select(idle, filled(1, beside), lax::add(beside, squares(alpha)));
  const Array length = lax::sqrt(square);
  const Array beta = lax::select(lax::lt(real, constant(0, real)), length, lax::neg(length));
  const Array wide = real_as(beta, alpha);
  const Array one = filled(1, alpha);
  const Array divisor = lax::select(idle, one, lax::sub(alpha, wide));
  Array tau = lax::div(lax::sub(wide, alpha), wide);
  tau = lax::select(idle, lax::zeros_like(tau.aval()), tau);
  const auto as_column = [&](const Array& number) {
    return plait::broadcast_to(numpy::expand_dims(number, {-2, -1}), column.shape());
  };
  const Array scaled = lax::div(tail, as_column(divisor));
  const Array one_there = as_weak_as(column, astype(is_first, column.dtype()));
  const Array v = lax::add(scaled, plait::broadcast_to(one_there, column.shape()));
  return {v, tau, lax::select(idle, alpha, wide)};
}

// Reduces each column k < count below row k + offset, and with two_sided multiplies by the
// reflections from the right too.
Packed reduced(const Array& x, const Dim& count, int offset, bool two_sided) {
  const Dim m = rows_of(x.aval()), n = columns_of(x.aval());
  const Array rows = lax::iota(DType::int32, {m, Dim(1)}, 0),
              columns = lax::iota(DType::int32, {Dim(1), n}, 1);
  const auto number = [](const Array& scalar, const Array& like) {
    return plait::broadcast_to(numpy::expand_dims(scalar, {-2, -1}), like.shape());
  };
  const auto step = [&](std::span<const Array> inputs) -> Arrays {
    const Array &a = inputs[0], &k = inputs[1];
    const Array first = lax::add(k, Array::literal(offset, DType::int32));
    const Array is_first = lax::eq(rows, first), is_below = lax::gt(rows, first);
    const Array is_column = lax::eq(columns, k), is_later = lax::gt(columns, k);
    const Array column =
        as_columns(lax::reduce_sum(only(is_column, a), std::vector<int>{a.ndim() - 1}));
    const auto [v, tau, beta] = reflection_of(column, is_first, is_below);
    const Array vh = adjoint(v);
    const Array along = only(is_later, matmul(vh, a));
    const Array tau_h = is_complex(tau.dtype()) ? conj(tau) : tau;
    const Array left = lax::mul(number(tau_h, along), along);
    Array next = lax::sub(a, matmul(v, left));
    if (two_sided) {
      const Array moved = matmul(next, v);
      next = lax::sub(next, matmul(lax::mul(number(tau, moved), moved), vh));
    }
    const Array kept = lax::select(
        plait::broadcast_to(is_below, column.shape()), v,
        lax::select(plait::broadcast_to(is_first, column.shape()), number(beta, column), column));
    next = lax::select(plait::broadcast_to(is_column, a.shape()),
                       plait::broadcast_to(kept, a.shape()), next);
    return {next, tau};
  };
  const Array steps = lax::iota(DType::int32, {count}, 0);
  const flat::Scanned scanned = flat::scan(step, std::span(&x, 1), std::span(&steps, 1));
  return {scanned.carry[0], moved(scanned.ys[0], 0, scanned.ys[0].ndim() - 1)};
}

Array matrices_of(std::string_view name, const Array& x, bool square) {
  const Array a = to_inexact(x);
  require_matrices(name, std::span(&a.aval(), 1));
  if (square) require_square(name, a.aval());
  return a;
}

// The first columns of the unit lower trapezoid whose diagonal starts in row `offset`.
Array vectors_of(const Array& a, const Dim& count, int offset) {
  const Array below = lower(leading(a, rows_of(a.aval()), count), -1 - offset);
  const Array unit = numpy::eye(rows_of(a.aval()), count, -offset, a.dtype());
  return lax::add(below, plait::broadcast_to(as_weak_as(a, unit), below.shape()));
}

// I - V T V^H = H_0 H_1 ...: T = (I + D S)^-1 D for D = diag(taus) and the strict upper triangle S
// of V^H V. Schreiber and Van Loan, "A storage-efficient WY representation for products of
// Householder transformations" (1989).
Array triangle_of(const Array& v, const Array& taus) {
  const Array between = upper(matmul(adjoint(v), v), 1);
  const Array scaled = broadcast_product(between, as_columns(taus));
  const Array k = plait::broadcast_to(eye(columns_of(v.aval()), columns_of(v.aval()), v.dtype()),
                                      scaled.shape());
  return lax::linalg::triangular_solve(scaled, broadcast_product(k, as_rows(taus)), true, false,
                                       false, false, true);
}

Arrays promoted_reflections(std::string_view name, const Array& a, const Array& taus,
                            const std::optional<Array>& c) {
  Arrays all{to_inexact(a), to_inexact(taus)};
  if (c) all.push_back(to_inexact(*c));
  promote_dtypes(all, name);
  require_matrices(name, std::span(&all[0].aval(), 1));
  const Aval& matrix = all[0].aval();
  const bool fits = all[1].ndim() == matrix.rank() - 1 && (!c || all[2].ndim() == matrix.rank()) &&
                    less_equal(all[1].shape(all[1].ndim() - 1), columns_of(matrix)).value_or(true);
  if (!fits)
    throw ShapeError(std::string(name) + ": reflections of shape (" + matrix.shape.to_string() +
                         ") with factors of shape (" + all[1].shape().to_string() + ")" +
                         (c ? " for an array of shape (" + c->shape().to_string() + ")" : ""),
                     "give at most as many factors as columns, and the same batch axes");
  return all;
}

}  // namespace

namespace lax::linalg {

Packed geqrf(Operand x) {
  const Array a = matrices_of("geqrf", x, false);
  return reduced(a, minimum(rows_of(a.aval()), columns_of(a.aval())), 0, false);
}

Packed hessenberg(Operand a) {
  const Array x = matrices_of("hessenberg", a, true);
  const Dim n = rows_of(x.aval());
  return reduced(x, n - minimum(n, 1), 1, true);
}

Tridiagonal tridiagonal(Operand a, bool lower) {
  const Array x = matrices_of("tridiagonal", a, true);
  const std::vector<int> both{x.ndim() - 2, x.ndim() - 1}, last{x.ndim() - 2};
  const auto turned = [&](const Array& y, const std::vector<int>& axes) {
    return lower ? y : Array(lax::rev(y, axes));
  };
  const Array given = turned(x, both);
  const Dim n = rows_of(x.aval());
  const auto [packed, taus] = reduced(hermitian_of(given, true), n - minimum(n, 1), 1, true);
  const Array d = real_diagonal(packed);
  const Array beside = numpy::diagonal(packed, -1, -2, -1);
  const Array e = is_complex(beside.dtype()) ? Array(lax::real(beside)) : beside;
  const Array kept = lax::add(matrices::lower(packed), upper(given, 1));
  return {turned(kept, both), turned(d, last), turned(e, last), turned(taus, last)};
}

Array householder_product(Operand a, Operand taus) {
  const Arrays given = promoted_reflections("householder_product", a, taus, std::nullopt);
  const Array& x = given[0];
  const Dim m = rows_of(x.aval()), n = columns_of(x.aval()),
            k = given[1].shape(given[1].ndim() - 1);
  const Array v = vectors_of(x, k, 0), t = triangle_of(v, given[1]);
  const Array identity =
      plait::broadcast_to(as_weak_as(x, numpy::eye(m, n, 0, x.dtype())), x.shape());
  return lax::sub(identity, matmul(v, matmul(t, matmul(adjoint(v), identity))));
}

Array ormqr(Operand a, Operand taus, Operand c, bool left, bool transpose) {
  const Arrays given = promoted_reflections("ormqr", a, taus, Array(c));
  const Array& x = given[2];
  const Array v = vectors_of(given[0], given[1].shape(given[1].ndim() - 1), 0);
  Array t = triangle_of(v, given[1]);
  if (transpose) t = adjoint(t);
  if (left) return lax::sub(x, matmul(v, matmul(t, matmul(adjoint(v), x))));
  return lax::sub(x, matmul(matmul(matmul(x, v), t), adjoint(v)));
}

Array symmetric_product(Operand a_matrix, Operand c_matrix, double alpha, double beta,
                        bool symmetrize_output) {
  Arrays both{to_inexact(a_matrix), to_inexact(c_matrix)};
  promote_dtypes(both, "symmetric_product");
  const Array &a = both[0], &c = both[1];
  require_matrices("symmetric_product", std::span(&a.aval(), 1));
  if (!(c.shape() == result_of(a.aval(), {rows_of(a.aval()), rows_of(a.aval())}).shape))
    throw ShapeError("symmetric_product: matrices of shapes (" + a.shape().to_string() + ") and (" +
                         c.shape().to_string() + ") do not fit",
                     "give a square c_matrix of as many rows as a_matrix has, and its batch");
  const Array product = lax::mul(matmul(a, transposed(a)), constant(alpha, a));
  const Array sum = lax::add(product, lax::mul(c, constant(beta, c)));
  if (!symmetrize_output) return sum;
  return lax::add(matrices::lower(sum), transposed(matrices::lower(sum, -1)));
}

QDWH qdwh(Operand x, std::optional<int> max_iterations, std::optional<double> eps) {
  const Array a = matrices_of("qdwh", x, false);
  const auto [u, steps, converged] = polar(a, max_iterations, eps);
  return {u, symmetrized(matmul(adjoint(u), a)), steps, converged};
}

}  // namespace lax::linalg

namespace {

namespace of = lax::linalg;

[[maybe_unused]] const FunctionInfo* const reflection_functions[] = {
    function(
        "lax.linalg", "hessenberg(a)",
        "a and taus: the h of a = q h q^H on the first subdiagonal and above, and the Householder "
        "reflections of q below it, with the factors taus, of shape (..., n - 1).",
        +[](Operand a) {
          const auto [packed, taus] = of::hessenberg(a);
          return std::pair{packed, taus};
        }),
    function(
        "lax.linalg", "tridiagonal(a, *, lower=True)",
        "a, d, e and taus: Hermitian matrices, of which one triangle is read, reduced to a "
        "diagonal "
        "d and e beside it (both real), and the Householder reflections that do so, in that "
        "triangle of a.",
        +[](Operand a, bool lower) {
          const auto [packed, d, e, taus] = of::tridiagonal(a, lower);
          return std::tuple{packed, d, e, taus};
        }),
    function("lax.linalg", "householder_product(a, taus)",
             "The first n columns of the product of the reflections that lie below the diagonal of "
             "a, of shape (..., m, n), with factors taus, of shape (..., k), k <= n.",
             &of::householder_product),
    function("lax.linalg", "ormqr(a, taus, c, *, left=True, transpose=False)",
             "q c, or c q unless left, for the q of shape (..., m, m) whose reflections are a and "
             "taus as in householder_product; q^H in its place when transpose.",
             &of::ormqr),
    function("lax.linalg",
             "symmetric_product(a_matrix, c_matrix, *, alpha=1.0, beta=0.0, "
             "symmetrize_output=False)",
             "alpha a_matrix a_matrix^T + beta c_matrix; symmetrize_output copies the lower "
             "triangle to the upper one.",
             &of::symmetric_product),
    function(
        "lax.linalg",
        "qdwh(x, *, is_hermitian=False, max_iterations=None, eps=None, dynamic_shape=None!)",
        "u, h, num_iters and is_converged of the polar decomposition x = u h: orthonormal columns "
        "of u, and a positive semidefinite h, for matrices of at least as many rows as columns, by "
        "the QR-based dynamically weighted Halley iteration. is_hermitian says something of x, and "
        "is not needed. num_iters (int32) and is_converged are of each matrix.",
        +[](Operand x, bool, std::optional<int> max_iterations, std::optional<double> eps) {
          const auto [u, h, steps, converged] = of::qdwh(x, max_iterations, eps);
          return std::tuple{u, h, steps, converged};
        }),
};

}  // namespace
}  // namespace plait
