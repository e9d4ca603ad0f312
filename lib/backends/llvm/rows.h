// Groups with reductions: what is computed for every element of a row, and what once for a row.
//
// A row is what one reduction reads: all reductions of a group are over the same trailing axes of
// one shape. What they give, and what is computed from that, is a number per row, which comes back
// to the elements through broadcasts (softmax, normalisation, their gradients). Sums over all rows
// may be made beside, which nothing in the group reads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

#include <span>

namespace plait::llvm {

Sizes64 without_ones(const Sizes64& sizes);
bool is_row_reduction(const Equation& equation, const Aval& input);
// Whether these equations of a program, in order, are of that form: one loop over rows then
// computes them all.
bool are_of_rows(const JaxprData& program, std::span<const int> equations);

}  // namespace plait::llvm
