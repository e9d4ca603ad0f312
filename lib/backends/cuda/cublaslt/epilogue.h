// Epilogues: equations behind a product that cuBLASLt computes before it writes the result, which
// is then rounded once. In this order, each once at most: the product times a number, plus an array
// of its shape, plus a row, and relu or gelu of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

#include <span>
#include <vector>

namespace plait::cuda {

enum class Activation { none, relu, gelu };

struct Epilogue {
  std::vector<int> equations;  // of the program, behind the product's
  double scale = 1;
  std::vector<Var> added;  // in order; which of them are rows is known by their strides
  Activation activation = Activation::none;
  Var result;  // what is computed so far, the product or what the last equation makes
};

// What a library takes behind an equation: numbers before anything is added, arrays of the result's
// shape, rows that lie along axes of the result (none: no rows), relu and gelu.
struct Epilogues {
  bool scales = false;
  std::vector<int> row_axes;
  bool (*relu_keeps_nan)() = nullptr;  // asked where a relu follows; null: it takes none
  bool has_gelu = false;
};
// All that follows an equation and may be its epilogue. uses: of every var of the program. Of what
// is added, the program tells whether it is a row; in a group, whose operands come from elsewhere,
// that was found before.
enum class Rows { known, found_before };
Epilogue epilogue_of(const JaxprData& program, std::span<const int> uses, int equation, Rows rows,
                     const Epilogues& taken);
// Of a product.
Epilogue epilogue_of(const JaxprData& program, std::span<const int> uses, int product, Rows rows);
std::vector<int> count_uses(const JaxprData& program);

// The axes of a product's result that come from its right factor, which are the last ones.
int num_columns_of(const JaxprData& program, const Equation& product);

}  // namespace plait::cuda
