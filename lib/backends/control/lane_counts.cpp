// See lane_counts.h.
// SPDX-License-Identifier: Apache-2.0
#include "backends/control/lane_counts.h"

#include <plait/backends/lane_work.h>

#include <numeric>

namespace plait {

void count_lane_work(const codegen::LoopProgram& program, std::span<void* const> memories) {
  for (std::size_t i = 0; i < program.memories.size(); ++i) {
    const codegen::Memory& memory = program.memories[i];
    if (memory.space != codegen::Memory::Space::counts) continue;
    const auto* const counts = static_cast<const std::int64_t*>(memories[i]);
    const std::int64_t sum = std::accumulate(counts, counts + memory.size, std::int64_t(0));
    add_lane_work({sum, sum});  // each runs its own bodies alone
  }
}

}  // namespace plait
