// Loop programs of groups as stages, lowered once for those who ask: backends whether they take an
// equation, how many kernels groups are, and what to compile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

#include "stages.h"

namespace plait::cuda {

inline constexpr std::size_t most_parameters = 480;  // of a kernel: 4 KiB

// The loop program of a group as stages, or the reason why it has none. It is the same for every
// CUDA device.
struct Lowered {
  std::shared_ptr<const Staged> staged;
  std::string reason;
};
Lowered lowered(const Jaxpr& group, std::span<const Sizes64> strides, Device device,
                std::int64_t fewest_of_cooperative = cuda::fewest_of_cooperative);

}  // namespace plait::cuda
