// Groups with reductions: what is computed for every element of a row, and what once for a row.
//
// A row is what one reduction reads: all reductions of a group are over the same trailing axes of
// one shape. What they give, and what is computed from that, is a number per row, which comes back
// to the elements through broadcasts (softmax, normalisation, their gradients).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

#include <optional>
#include <span>
#include <vector>

namespace plait::llvm {

struct Rows {
  Sizes64 shape;      // of what is reduced
  int num_outer = 0;  // its leading axes, which count rows; the others are a row's
  std::int64_t count = 1, length = 1;
  std::vector<bool> is_row;  // by var: a number per row
  // By var: the sums and so on over all rows, which nothing in the group reads.
  std::vector<bool> is_column;
  // By equation: the pass over the row that computes it; for what is computed once, the pass before
  // which that happens.
  std::vector<int> pass;
  int num_passes = 1;
};

Sizes64 without_ones(const Sizes64& sizes);
bool is_row_reduction(const Equation& equation, const Aval& input);
// These equations of a program as rows, in order; nothing when they are not of that form.
std::optional<Rows> find_rows(const JaxprData& program, std::span<const int> equations);

}  // namespace plait::llvm
