// plait.scipy.linalg: factorizations, solutions with them, and the matrix exponential.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/lax.h>
#include <plait/functions/scipy_linalg.h>
#include <plait/primitives/narrow.h>

#include "functions/functions.h"
#include "functions/systems.h"
#include "primitives/linalg/matrices.h"

namespace plait {
using namespace functions;  // NOLINT

namespace scipy::linalg {

// --- Arguments -----------------------------------------------------------------------------------

std::optional<CholeskyFactor> CholeskyFactor::from_argument(const Argument& argument) {
  const auto* list = std::get_if<Argument::List>(&argument.value);
  if (!list || list->size() != 2) return std::nullopt;
  const auto* lower = std::get_if<bool>(&(*list)[1].value);
  const std::optional<Array> c = plait::detail::as_array((*list)[0]);
  if (!c || !lower) return std::nullopt;
  return CholeskyFactor{*c, *lower};
}
std::optional<LUFactor> LUFactor::from_argument(const Argument& argument) {
  const std::optional<Arrays> both = plait::detail::as_arrays(argument);
  if (!both || both->size() != 2) return std::nullopt;
  return LUFactor{(*both)[0], (*both)[1]};
}
Transposed::Transposed(int trans) : transpose(trans != 0), conjugate(trans == 2) {
  if (trans < 0 || trans > 2)
    throw ValueError("trans is " + std::to_string(trans), "give 0, 1 or 2");
}
Transposed::Transposed(const char* letter) : Transposed(int(std::string("NTC").find(letter))) {}
std::optional<Transposed> Transposed::from_argument(const Argument& argument) {
  if (const auto* letter = std::get_if<std::string>(&argument.value))
    return *letter == "N" || *letter == "T" || *letter == "C"
               ? std::optional<Transposed>(letter->c_str())
               : std::nullopt;
  const std::optional<std::int64_t> number = plait::detail::as_integer(argument);
  if (!number || *number < 0 || *number > 2) return std::nullopt;
  return Transposed(int(*number));
}

// --- Systems -------------------------------------------------------------------------------------

Array cholesky(Operand a, bool lower) { return numpy::linalg::cholesky(a, !lower); }
CholeskyFactor cho_factor(Operand a, bool lower) { return {cholesky(a, lower), lower}; }

Array cho_solve(const CholeskyFactor& c_and_lower, Operand b) {
  const bool lower = c_and_lower.lower, complex = is_complex(c_and_lower.c.dtype());
  const auto [c, right] = systems::promoted_system("cho_solve", c_and_lower.c, b);
  return systems::for_columns("cho_solve", c, right, [=](const Array& c, const Array& b) {
    using lax::linalg::triangular_solve;
    // L L^H x = b, or U^H U x = b.
    const Array y = triangular_solve(c, b, true, lower, !lower, complex && !lower);
    return triangular_solve(c, y, true, lower, lower, complex && lower);
  });
}

Array solve_triangular(Operand a, Operand b, const Transposed& trans, bool lower,
                       bool unit_diagonal) {
  const auto [left, right] = systems::promoted_system("solve_triangular", a, b);
  return systems::for_columns("solve_triangular", left, right, [&](const Array& a, const Array& b) {
    return lax::linalg::triangular_solve(a, b, true, lower, trans.transpose, trans.conjugate,
                                         unit_diagonal);
  });
}

std::tuple<Array, Array, Array> lu(Operand a) {
  const Array x = to_inexact(a);
  const auto [factors, pivots, permutation] = lax::linalg::lu(x);
  const Dim m = matrices::rows_of(x.aval()), n = matrices::columns_of(x.aval()), k = minimum(m, n);
  const Array below = matrices::lower(matrices::leading(factors, m, k), -1);
  const Array unit =
      plait::broadcast_to(as_weak_as(x, numpy::eye(m, k, 0, x.dtype())), below.shape());
  const Array u = matrices::upper(matrices::leading(factors, k, n));
  // Column i of p is 1 in row permutation[i].
  Shape square = permutation.shape();
  square.push_back(m);
  const int last = square.rank() - 1;
  const Array row = lax::iota(DType::int32, square, last - 1);
  const Array p = numpy::equal(row, matrices::as_rows(permutation));
  const DType real = real_dtype_of(x.dtype());
  return {lax::convert_element_type(p, real, x.aval().weak), lax::add(below, unit), u};
}

LUFactor lu_factor(Operand a) {
  const auto [factors, pivots, permutation] = lax::linalg::lu(to_inexact(a));
  return {factors, pivots};
}

Array lu_solve(const LUFactor& lu_and_piv, Operand b, const Transposed& trans) {
  const auto [factors, right] = systems::promoted_system("lu_solve", lu_and_piv.lu, b);
  const Array permutation =
      lax::linalg::lu_pivots_to_permutation(lu_and_piv.pivots, matrices::rows_of(factors.aval()));
  return systems::for_columns("lu_solve", factors, right, [&](const Array& lu, const Array& b) {
    Shape shape(lu.shape().begin(), lu.shape().end() - 1);
    return systems::solve_factored(lu, plait::broadcast_to(permutation, shape), b, trans.transpose,
                                   trans.conjugate);
  });
}

Array solve(Operand a, Operand b, bool lower, const std::string& assume_a) {
  if (assume_a == "gen") return numpy::linalg::solve(a, b);
  if (assume_a != "pos")
    throw ValueError("solve: assume_a is '" + assume_a + "'", "give 'gen' or 'pos'");
  const Array x = to_inexact(a);
  const Array c = lax::linalg::cholesky(lower ? x : matrices::adjoint(x), false);
  return cho_solve({c, true}, b);
}

Array det(Operand a) { return numpy::linalg::det(a); }
Array inv(Operand a) { return numpy::linalg::inv(a); }

// --- Functions of matrices -----------------------------------------------------------------------

namespace {

// The odd and even parts of the numerator of the Pade approximant of order 13.
std::pair<Array, Array> pade_13(const Array& a) {
  static constexpr double b[] = {64764752532480000.,
                                 32382376266240000.,
                                 7771770303897600.,
                                 1187353796428800.,
                                 129060195264000.,
                                 10559470521600.,
                                 670442572800.,
                                 33522128640.,
                                 1323241920.,
                                 40840800.,
                                 960960.,
                                 16380.,
                                 182.,
                                 1.};
  const Array one = plait::broadcast_to(
      as_weak_as(a, numpy::eye(matrices::rows_of(a.aval()), {}, 0, a.dtype())), a.shape());
  const Array a2 = matrices::matmul(a, a), a4 = matrices::matmul(a2, a2),
              a6 = matrices::matmul(a4, a2);
  auto sum = [&](int from, bool with_one) {
    Array total = lax::add(
        lax::add(lax::mul(a6, constant(b[from + 6], a)), lax::mul(a4, constant(b[from + 4], a))),
        lax::mul(a2, constant(b[from + 2], a)));
    return with_one ? lax::add(total, lax::mul(one, constant(b[from], a))) : total;
  };
  auto part = [&](int parity) {
    return lax::add(matrices::matmul(a6, sum(parity + 6, false)), sum(parity, true));
  };
  return {matrices::matmul(a, part(1)), part(0)};
}

}  // namespace

Array expm(Operand A, bool upper_triangular, int max_squarings) {
  const Array a = to_inexact(A);
  matrices::require_matrices("expm", std::span(&a.aval(), 1));
  matrices::require_square("expm", a.aval());
  const std::vector<int> both{a.ndim() - 2, a.ndim() - 1};
  auto spread = [&](const Array& scalar) {
    return plait::broadcast_to(numpy::expand_dims(scalar, {-2, -1}), a.shape());
  };
  // theta_13: below it the approximant is exact to float64's rounding.
  const Array norm = lax::stop_gradient(numpy::linalg::norm(a, 1, {-2, -1}));
  const Array ratio =
      lax::max(lax::div(norm, constant(5.371920351148152, norm)), constant(0x1p-20, norm));
  const Array squarings = lax::max(lax::ceil(numpy::log2(ratio)), constant(0, ratio));  // NaN stays
  const Array scale = lax::exp2(lax::neg(squarings));
  const Array scaled = lax::mul(a, astype(spread(scale), a.dtype()));
  const auto [odd, even] = pade_13(scaled);
  const Array left = lax::sub(even, odd), right = lax::add(even, odd);
  Array result = upper_triangular ? lax::linalg::triangular_solve(left, right, true, false)
                                  : numpy::linalg::solve(left, right);
  for (int i = 0; i < max_squarings; ++i)
    result = lax::select(spread(lax::gt(squarings, constant(i, squarings))),
                         matrices::matmul(result, result), result);
  const Array done = lax::le(squarings, constant(max_squarings, squarings));
  return lax::select(spread(done), result, filled(NAN, result));
}

Array block_diag(Operands arrs) {
  if (arrs.empty()) throw ValueError("block_diag: there are no arrays", "give one or more");
  Arrays blocks = arrs;
  promote_dtypes(blocks, "block_diag");
  for (Array& block : blocks) {
    if (block.ndim() > 2)
      throw ShapeError("block_diag: an array of shape (" + block.shape().to_string() + ")",
                       "give matrices, vectors or numbers");
    block = numpy::atleast_2d(block);
  }
  Dim columns = 0, before = 0;
  for (const Array& block : blocks) columns = columns + block.shape(1);
  Arrays rows;
  for (const Array& block : blocks) {
    const Dim after = columns - before - block.shape(1);
    rows.push_back(lax::pad(block, constant(0, block), {{0, 0, 0}, {before, after, 0}}));
    before = before + block.shape(1);
  }
  return lax::concatenate(rows, 0);
}

namespace {

[[maybe_unused]] const FunctionInfo* const linalg_functions[] = {
    function("scipy.linalg", "cholesky(a, lower=False, overwrite_a=False!, check_finite=True!)",
             "U of a = U^H U, or L of a = L L^H when lower, with zeros in the other triangle; NaN "
             "where a matrix is not positive definite.",
             &cholesky),
    function(
        "scipy.linalg", "cho_factor(a, lower=False, overwrite_a=False!, check_finite=True!)",
        "cholesky of a, and lower: what cho_solve takes.",
        +[](Operand a, bool lower) {
          const CholeskyFactor factor = cho_factor(a, lower);
          return Argument(Argument::List{factor.c, factor.lower});
        }),
    function("scipy.linalg", "cho_solve(c_and_lower, b, overwrite_b=False!, check_finite=True!)",
             "The x of a x = b by what cho_factor gives for a. b is a vector when it has one axis.",
             &cho_solve),
    function("scipy.linalg",
             "solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False, "
             "overwrite_b=False!, debug=None!, check_finite=True!)",
             "The x of op(a) x = b for triangular a, of which the other triangle is not read: op "
             "transposes for trans 1 or 'T', and conjugates too for 2 or 'C'.",
             &solve_triangular),
    function(
        "scipy.linalg", "lu(a, permute_l=False, overwrite_a=False!, check_finite=True!)",
        "p, l and u of a = p l u; p l and u when permute_l.",
        +[](Operand a, bool permute_l) {
          const auto [p, l, u] = lu(a);
          if (!permute_l) return Argument(Argument::List{p, l, u});
          return Argument(Argument::List{matrices::matmul(matrices::in_dtype(p, l.dtype()), l), u});
        }),
    function(
        "scipy.linalg", "lu_factor(a, overwrite_a=False!, check_finite=True!)",
        "l below the diagonal and u on and above it, in one matrix, and the pivots (int32): what "
        "lu_solve takes.",
        +[](Operand a) {
          const LUFactor factor = lu_factor(a);
          return std::pair{factor.lu, factor.pivots};
        }),
    function("scipy.linalg",
             "lu_solve(lu_and_piv, b, trans=0, overwrite_b=False!, check_finite=True!)",
             "The x of op(a) x = b by what lu_factor gives for a; op as in solve_triangular.",
             &lu_solve),
    function("scipy.linalg",
             "solve(a, b, lower=False, overwrite_a=False!, overwrite_b=False!, debug=False!, "
             "check_finite=True!, assume_a='gen')",
             "The x of a x = b. assume_a 'pos': a is positive definite, and its upper triangle is "
             "read, or the lower.",
             &solve),
    function("scipy.linalg", "det(a, overwrite_a=False!, check_finite=True!)",
             "The same as numpy.linalg.det.", &det),
    function("scipy.linalg", "inv(a, overwrite_a=False!, check_finite=True!)",
             "The same as numpy.linalg.inv.", &inv),
    function("scipy.linalg", "expm(A, *, upper_triangular=False, max_squarings=16)",
             "The matrix exponential of square matrices; NaN where more squarings would be needed "
             "(norms above 5.37 times 2^max_squarings). upper_triangular: they are, and a "
             "triangular system is solved.",
             &expm),
    function("scipy.linalg", "block_diag(*arrs)",
             "Matrices along the diagonal of a matrix of zeros; vectors are rows.", &block_diag),
};

}  // namespace
}  // namespace scipy::linalg
}  // namespace plait
