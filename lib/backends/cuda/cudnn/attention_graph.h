// Attention as cuDNN knows it, in 16-bit floats: softmax(scale q k^T) v, written out as the
// operations that its engines recognise together. All that the choice of an engine depends on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dtype.h>

#include <array>

#include "backends/cuda/cudnn/plan.h"

namespace plait::cuda {

struct AttentionGraph {
  DType dtype = DType::bfloat16;
  std::int64_t batch = 1, heads = 1, queries = 1, keys = 1, depth = 1, value_depth = 1;
  // Of q, k and v: [batch, heads, length, depth]. The result is dense.
  std::array<std::array<std::int64_t, 4>, 3> strides = {};
  bool is_causal = false;  // keys that come later than a query do not count

  std::array<std::int64_t, 4> sizes_of(int operand) const;  // 3: of the result
  auto operator<=>(const AttentionGraph&) const = default;
  // "attention bfloat16 2x4x128x64 by 2x4x100x64 causal".
  std::string to_string() const;
};

inline constexpr std::int64_t attention_alignment = 16;  // of addresses

// Memory of a call: q, k, v and the result; the scale, and what scores of excluded pairs are.
struct AttentionMemory {
  std::array<const void*, 4> tensors = {};
  const float *scale = nullptr, *excluded = nullptr;  // on the host
};
std::vector<TensorMemory> numbered(const AttentionGraph& graph, const AttentionMemory& memory);

Operations describe(const AttentionGraph& graph);

}  // namespace plait::cuda
