// The cost of running control flow under vmap.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace plait {

// The cost of vmapped control flow, over all threads since the start of the process: how many times
// a body was applied to an example that needed it, and how many times in all. A body runs on the
// live examples, padded to the size of the batch halved a number of times.
struct LaneWork {
  std::int64_t live, all;
};
LaneWork lane_work();
// Adds to it.
void add_lane_work(const LaneWork& work);

}  // namespace plait
