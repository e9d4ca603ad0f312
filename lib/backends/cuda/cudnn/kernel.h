// Kernels of convolutions, with what follows them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

#include "backends/cuda/cublaslt/epilogue.h"
#include "backends/cuda/cudnn/convolution.h"

namespace plait::cuda {

// What may follow a convolution as part of it: an array, numbers for each channel, relu. The
// library takes it where there are such numbers; without, there is none.
Epilogue convolution_epilogue(const JaxprData& program, std::span<const int> uses, int convolution);

// The graph of a convolution whose operands lie dense.
std::vector<ConvolutionGraph> dense_graphs(const Params& params, std::span<const Aval> inputs,
                                           const Aval& output);

// A convolution and what convolution_epilogue finds behind it; what cuDNN does not take of that
// runs as generated loops behind it.
std::unique_ptr<Kernel> make_convolution_kernel(const Jaxpr& group, const Target& target);

}  // namespace plait::cuda
