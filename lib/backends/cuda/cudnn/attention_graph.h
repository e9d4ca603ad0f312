// Attention as cuDNN knows it, in 16-bit floats: softmax(scale q k^T + bias) v and its gradient,
// written out as the operations that its engines recognise together. All that the choice of an
// engine depends on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dtype.h>

#include <array>
#include <string_view>

#include "backends/cuda/cudnn/plan.h"

namespace plait::cuda {

using FourSizes = std::array<std::int64_t, 4>;

// What a graph computes. training: the result, and of each row of scores the logarithm of the sum
// of its powers. gradient: those of q, k and v, from these and the result's cotangent.
enum class AttentionPart { forward, training, gradient };

// Tensors of four sizes. The first five have strides of their own, all others lie dense.
enum class AttentionTensor : std::uint8_t {
  q,
  k,
  v,
  result,  // strided as an operand of the gradient
  cotangent,
  statistics,  // float32 [batch, heads, queries, 1]
  bias,        // what is added to scores
  of_q,
  of_k,
  of_v,
  weighted,  // float32, as statistics: of each query the product of result and cotangent
};
// "q", "gradient of k", ...
std::string_view name_of(AttentionTensor tensor);
inline constexpr std::size_t num_attention_tensors = 11, num_strided_attention_tensors = 5;

struct AttentionGraph {
  AttentionPart part = AttentionPart::forward;
  DType dtype = DType::bfloat16;
  std::int64_t batch = 1, heads = 1, queries = 1, keys = 1, depth = 1, value_depth = 1;
  std::array<FourSizes, num_strided_attention_tensors> strides = {};
  bool is_causal = false;  // keys that come later than a query do not count
  // Of what is added to scores, dense, where anything is; sizes of 1 are repeated.
  std::optional<FourSizes> bias;

  DType dtype_of(AttentionTensor tensor) const;
  FourSizes sizes_of(AttentionTensor tensor) const;
  FourSizes strides_of(AttentionTensor tensor) const;
  std::int64_t bytes_of(AttentionTensor tensor) const;  // from its first element to the last
  bool reads(AttentionTensor tensor) const;
  bool writes(AttentionTensor tensor) const;
  auto operator<=>(const AttentionGraph&) const = default;
  // "attention bfloat16 2x4x128x64 by 2x4x100x64 causal".
  std::string to_string() const;
};

inline constexpr std::int64_t attention_alignment = 16;  // of addresses

// Memory of a call, by tensor; numbers are the host's.
struct AttentionMemory {
  std::array<const void*, num_attention_tensors> tensors = {};
  const float *scale = nullptr, *excluded = nullptr, *one = nullptr;
};
std::vector<TensorMemory> numbered(const AttentionGraph& graph, const AttentionMemory& memory);

Operations describe(const AttentionGraph& graph);

}  // namespace plait::cuda
