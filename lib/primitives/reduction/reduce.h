// The order of reductions, for backends that fuse them with other equations: see NOTE: [reduction
// order].
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dtype.h>
#include <plait/base/shape.h>
#include <plait/rules/emit.h>

#include <span>

#include <string>
#include <vector>

namespace plait {

// A stage of a reduction: reduces the middle axis of elements [outer, n, inner].
struct ReductionStage {
  static constexpr std::int64_t row_block = 1024, column_block = 64;
  std::int64_t outer = 1, n = 1, inner = 1;
  // Whether the elements of one result are contiguous and summed together, or rows of results are
  // summed in turn.
  bool is_by_rows() const { return inner < 8; }
  std::int64_t block() const { return is_by_rows() ? row_block : column_block; }
  std::int64_t num_blocks() const { return n <= block() ? 1 : (n + block() - 1) / block(); }
};

// The stages of a reduction, in order; at least one. axes are increasing.
using ReductionStages = InlineVector<ReductionStage, 3>;
ReductionStages reduction_stages(const Sizes64& shape, std::span<const int> axes);

// The kernel: elements of a kind's dtypes, of any strides, to a dense output.
void eval_reduce(const View& input, const View& output, const std::string& kind,
                 std::span<const int> axes);

// The value that changes nothing, and the elementwise primitive that combines two numbers.
Literal identity_of(const std::string& kind, DType dtype);
const Primitive& combining(const std::string& kind);

// The partial results of blocks, combined by halves, in a loop program.
loops::Value emit_pairwise(loops::Writer& w, const Primitive& by,
                           std::span<const loops::Value> blocks, Source source);
// The reduction of an array in a loop program.
loops::Tensor emit_reduction(loops::Writer& w, const std::string& kind,
                             const loops::Tensor& operand, std::span<const int> axes,
                             Source source);

}  // namespace plait
