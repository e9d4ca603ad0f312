// plait::numpy::linalg: norms and what else of linear algebra needs no decomposition. Names and
// arguments are those of NumPy and of the array-API standard.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/numpy.h>

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
// for 1 and of a row for inf. MissingRuleError for those that need singular values (2, -2, "nuc").
Array norm(Operand x, const NormOrder& ord = {}, const Axes& axis = {}, bool keepdims = false);
Array matrix_norm(Operand x, bool keepdims = false, const NormOrder& ord = "fro");
Array vector_norm(Operand x, const Axes& axis = {}, bool keepdims = false,
                  const NormOrder& ord = 2);
using numpy::cross;
using numpy::matmul;
using numpy::matrix_transpose;
using numpy::outer;
using numpy::vecdot;
// Of the last two axes.
Array diagonal(Operand x, int offset = 0);
Array trace(Operand x, int offset = 0, OptionalDType dtype = {});
// a times itself n times, by squaring; n >= 0.
Array matrix_power(Operand a, int n);

}  // namespace plait::numpy::linalg
