// Attention on CUDA devices: the composite, in 16-bit floats, without a mask or causal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

#include "backends/cuda/cudnn/attention_graph.h"

namespace plait::cuda {

bool is_attention(const Equation& equation);

// Of dense operands.
AttentionGraph dense_attention(const Params& attributes, std::span<const Aval> inputs);
Support supports_attention(const Equation& equation, std::span<const Aval> inputs, Device device);
std::unique_ptr<Kernel> make_attention_kernel(const Jaxpr& group, const Target& target);

}  // namespace plait::cuda
