// The order of reductions, for those who run them together with what surrounds them: see
// NOTE: [reduction order].
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dtype.h>
#include <plait/base/shape.h>

#include <span>

#include <string>
#include <vector>

namespace plait {

// A step of a reduction: of elements [outer, n, inner], the middle axis.
struct ReductionStage {
  static constexpr std::int64_t row_block = 1024, column_block = 64;
  std::int64_t outer = 1, n = 1, inner = 1;
  // Whether the elements of a number are added up side by side, or rows of numbers in turn.
  bool is_by_rows() const { return inner < 8; }
  std::int64_t block() const { return is_by_rows() ? row_block : column_block; }
  std::int64_t num_blocks() const { return n <= block() ? 1 : (n + block() - 1) / block(); }
};

// The stages of a reduction, in order; at least one. axes are increasing.
using ReductionStages = InlineVector<ReductionStage, 3>;
ReductionStages reduction_stages(const Sizes64& shape, std::span<const int> axes);

// Ends a reduction of which the blocks of the first stage are done. Their numbers have the dtype of
// the operand, float32 for 16-bit floats, and lie as [outer, inner, blocks] where the stage is by
// rows, else as [outer, blocks, inner].
void finish_reduction(const std::string& kind, DType dtype, std::span<const ReductionStage> stages,
                      const void* numbers, void* out);

}  // namespace plait
