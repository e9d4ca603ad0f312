// Attention on CUDA devices, and its gradient: the composite and the parts of its derivative (NOTE:
// [derivatives that a library knows]), in 16-bit floats: of all pairs, causal, or with a mask.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

#include "backends/cuda/cudnn/attention_graph.h"

namespace plait::cuda {

// What an equation computes of attention; absent where it is something else.
std::optional<AttentionPart> attention_part_of(const Equation& equation);

// The graph of an equation's operands where they lie dense. Those of q, k and v are enough for a
// part that is no gradient.
AttentionGraph dense_attention(AttentionPart part, const Params& attributes,
                               std::span<const Aval> inputs);
Support supports_attention(const Equation& equation, std::span<const Aval> inputs,
                           std::span<const Aval> outputs, Device device);
std::unique_ptr<Kernel> make_attention_kernel(const Jaxpr& group, const Target& target);

}  // namespace plait::cuda
