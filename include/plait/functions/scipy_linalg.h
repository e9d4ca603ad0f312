// plait::scipy::linalg: systems of equations by their factors, under SciPy's names. As in
// numpy_linalg.h, matrices are the last two axes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/numpy_linalg.h>

namespace plait::scipy::linalg {

// A matrix of cho_factor, and whether its lower triangle is the factor.
struct CholeskyFactor {
  static constexpr const char* argument_type = "(array, bool)";
  static std::optional<CholeskyFactor> from_argument(const Argument& argument);
  Array c;
  bool lower = false;
};
// The result of lu_factor.
struct LUFactor {
  static constexpr const char* argument_type = "(array, array)";
  static std::optional<LUFactor> from_argument(const Argument& argument);
  Array lu, pivots;
};
// Which system is solved: a x = b ("N" or 0), a^T x = b ("T" or 1) or a^H x = b ("C" or 2).
struct Transposed {
  static constexpr const char* argument_type = "0, 1, 2, 'N', 'T' or 'C'";
  static std::optional<Transposed> from_argument(const Argument& argument);
  Transposed(int trans = 0);       // NOLINT
  Transposed(const char* letter);  // NOLINT
  bool transpose = false, conjugate = false;
};

// U of a = U^H U, or L of L L^H when lower; zeros in the other triangle.
Array cholesky(Operand a, bool lower = false);
CholeskyFactor cho_factor(Operand a, bool lower = false);
Array cho_solve(const CholeskyFactor& c_and_lower, Operand b);
// b has one axis, or two or more whose batch axes are those of a.
Array solve_triangular(Operand a, Operand b, const Transposed& trans = 0, bool lower = false,
                       bool unit_diagonal = false);
// p, l and u of a = p l u.
std::tuple<Array, Array, Array> lu(Operand a);
LUFactor lu_factor(Operand a);
Array lu_solve(const LUFactor& lu_and_piv, Operand b, const Transposed& trans = 0);
// assume_a is "gen", or "pos" for positive definite matrices of which one triangle is read.
Array solve(Operand a, Operand b, bool lower = false, const std::string& assume_a = "gen");
Array det(Operand a);
Array inv(Operand a);
// The matrix exponential, by scaling, the Pade approximant of order 13, and squaring: Higham, "The
// scaling and squaring method for the matrix exponential revisited" (2005). NaN where more than
// max_squarings would be needed. upper_triangular says that of A.
Array expm(Operand A, bool upper_triangular = false, int max_squarings = 16);
// Matrices along the diagonal of a matrix of zeros.
Array block_diag(Operands arrs);

}  // namespace plait::scipy::linalg
