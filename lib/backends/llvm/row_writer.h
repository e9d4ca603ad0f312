// The loops of a group with reductions, as code. See rows.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "jit.h"
#include "primitives.h"
#include "rows.h"
#include "segments.h"

namespace plait::llvm {

// How an input is read.
struct RowInput {
  enum class Access { scalar, per_row, row, same_row } access = Access::scalar;
  // Loops over rows, from the outside in: sizes, and strides in elements.
  Sizes64 sizes, strides;
};

// Of the numbers of a reduction's blocks.
DType sum_dtype(DType dtype);

// A function of inputs, outputs, and memory for what passes between segments. Instead of a result
// over all rows it takes the numbers of its blocks of rows. streams: by output, past the caches.
Object write_rows(const JaxprData& group, const Rows& rows, const Segments& segments,
                  std::span<const RowInput> inputs, int lanes, const std::vector<bool>& streams);

}  // namespace plait::llvm
