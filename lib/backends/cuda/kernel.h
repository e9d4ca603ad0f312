// Kernels of loop programs on CUDA devices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

#include "lowered.h"
#include "text.h"

namespace plait::cuda {

// The kernel of a group that has a loop program; its inputs have these strides. It is compiled by
// another thread; the first call waits.
std::unique_ptr<Kernel> make_program_kernel(const Jaxpr& group, std::span<const Sizes64> strides,
                                            Device device);

// Those of several programs, which are compiled as one text.
std::vector<std::unique_ptr<Kernel>> make_program_kernels(
    std::span<const std::shared_ptr<const Staged>> programs, Device device, Sizes sizes);

}  // namespace plait::cuda
