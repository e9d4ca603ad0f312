// Kernels of loop programs on CUDA devices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

#include "stages.h"
#include "text.h"

namespace plait::cuda {

// The loop program of a group as stages, or the reason why it has none.
struct Lowered {
  std::shared_ptr<const Staged> staged;
  std::string reason;
};
Lowered lowered(const Jaxpr& group, std::span<const Sizes64> strides, Device device,
                std::int64_t fewest_of_cooperative = cuda::fewest_of_cooperative);

// The kernel of a group that has a loop program; its inputs have these strides. It is compiled by
// another thread; the first call waits.
std::unique_ptr<Kernel> make_program_kernel(const Jaxpr& group, std::span<const Sizes64> strides,
                                            Device device);

// Those of several programs, which are compiled as one text.
std::vector<std::unique_ptr<Kernel>> make_program_kernels(
    std::span<const std::shared_ptr<const Staged>> programs, Device device, Sizes sizes);

}  // namespace plait::cuda
