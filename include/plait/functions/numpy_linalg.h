// plait::numpy::linalg: norms, systems of equations and decompositions. Names and arguments are
// those of NumPy and of the array-API standard. Matrices are the last two axes; axes before them
// are a batch, and the batches of two operands broadcast. Integers are float32; 16-bit floats are
// refused.
//
// A singular matrix gives infinities or NaN, and one that is not positive definite gives NaN.
// Neither can be an error, because values are not known while a program is traced.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/numpy.h>

namespace plait::numpy::linalg {

// Which norm: none (2 of vectors, Frobenius of matrices), a number, or "fro".
class NormOrder {
 public:
  static constexpr const char* argument_type = "int, float or str, or None";
  static std::optional<NormOrder> from_argument(const Argument& argument);

  NormOrder() = default;
  NormOrder(double number) : number_(number) {}            // NOLINT
  NormOrder(const char* word) : word_(word) {}             // NOLINT
  NormOrder(std::string word) : word_(std::move(word)) {}  // NOLINT
  bool is_none() const { return !number_ && word_.empty(); }
  const std::optional<double>& number() const { return number_; }
  const std::string& word() const { return word_; }

 private:
  std::optional<double> number_;
  std::string word_;
};

// Of a vector: (sum |x|^ord)^(1/ord), the largest or smallest |x| for inf and -inf, the number of
// elements that are not 0 for 0. Of a matrix: "fro", or the largest (-: smallest) sum of a column
// for 1 and of a row for inf, of the singular values the largest (2), the smallest (-2) or the sum
// ("nuc").
Array norm(Operand x, const NormOrder& ord = {}, const Axes& axis = {}, bool keepdims = false);
Array matrix_norm(Operand x, bool keepdims = false, const NormOrder& ord = "fro");
Array vector_norm(Operand x, const Axes& axis = {}, bool keepdims = false,
                  const NormOrder& ord = 2);
using numpy::cross;
using numpy::matmul;
using numpy::matrix_transpose;
using numpy::outer;
using numpy::tensordot;
using numpy::vecdot;
// Of the last two axes.
Array diagonal(Operand x, int offset = 0);
Array trace(Operand x, int offset = 0, OptionalDType dtype = {});
// The n-th power of a, by repeated squaring; for n < 0, that of its inverse.
Array matrix_power(Operand a, int n);
// The product of matrices, in the order with the fewest multiplications. The first and the last may
// be vectors.
Array multi_dot(Operands arrays);

// The x of a x = b; b is a vector if it has one axis, and a matrix otherwise. The derivatives solve
// the same systems again, without differentiating the factorization.
Array solve(Operand a, Operand b);
Array inv(Operand a);
// The Moore-Penrose inverse. Singular values up to rtol times the largest count as 0; the default
// is 10 max(m, n) eps of the dtype.
Array pinv(Operand a, std::optional<double> rtol = {});
struct LeastSquares {
  Array x, residuals, rank, singular_values;
};
// The x of least norm among those that minimise |a x - b|; a is one matrix, b a vector or a matrix.
// residuals are the sums of squares of b - a x. Singular values up to rcond times the largest count
// as 0; the default is max(m, n) eps of the dtype.
LeastSquares lstsq(Operand a, Operand b, std::optional<double> rcond = {});
// The tensors with tensordot(a, x, x.ndim) = b, and tensordot(tensorinv(a), b, b.ndim) = x.
Array tensorsolve(Operand a, Operand b, const std::optional<std::vector<int>>& axes = {});
Array tensorinv(Operand a, int ind = 2);

// The determinant; its gradient is correct for singular matrices too.
Array det(Operand a);
// The sign of the determinant (the phase, for complex matrices) and the logarithm of its magnitude.
std::pair<Array, Array> slogdet(Operand a);
// The number of singular values above tol, or above rtol times the largest, as int32. rtol is
// max(m, n) eps of the dtype by default.
Array matrix_rank(Operand M, std::optional<double> rtol = {}, bool hermitian = false,
                  std::optional<double> tol = {});
// norm(x, p) norm(inv(x), p); without p, or for 2, the ratio of the largest singular value to the
// smallest.
Array cond(Operand x, const NormOrder& p = {});

// L of a = L L^H, or U = L^H when upper: lax::linalg::cholesky.
Array cholesky(Operand a, bool upper = false, bool symmetrize_input = true);
// q and r of a = q r; mode is "reduced", or "complete" for a square q. MissingRuleError when a
// complete q of more rows than columns is differentiated.
std::pair<Array, Array> qr(Operand a, const std::string& mode = "reduced");
// u, s and vh of a = u s vh: lax::linalg::svd. hermitian matrices are decomposed by eigh.
// MissingRuleError when a complete u or vh of a matrix that is not square is differentiated.
std::tuple<Array, Array, Array> svd(Operand a, bool full_matrices = true, bool hermitian = false);
Array svdvals(Operand x);
// Eigenvalues in ascending order, and eigenvectors, of Hermitian matrices: lax::linalg::eigh. UPLO
// says which triangle of a is read, unless symmetrize_input makes them equal.
std::pair<Array, Array> eigh(Operand a, const std::string& UPLO = "L",
                             bool symmetrize_input = true);
Array eigvalsh(Operand a, const std::string& UPLO = "L", bool symmetrize_input = true);

}  // namespace plait::numpy::linalg
