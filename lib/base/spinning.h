// Whether the pool's threads are still spinning for work: see NOTE: [waiting threads] in pool.cpp.
//
// Short kernels lie between the products of a loop's step. If one thread ran them, the others would
// fall asleep meanwhile, and each product would pay for waking them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace plait {

// The grain of a loop whose results do not depend on its ranges. Just after this thread has run a
// loop on all threads, entering another takes 1 us, and the grain is a fifth: about 4 us.
std::int64_t grain_while_spinning(std::int64_t grain);

// Loops that one thread runs again and again, such as those in the steps of a loop. Where several
// have followed each other as closely as threads spin, the next ones will too: sharing them is
// worth waking the threads once, even where each takes less than that.
class CloseLoops {
 public:
  // Of the loop that begins now.
  std::int64_t grain(std::int64_t grain);
  void end();  // of a loop

 private:
  std::chrono::steady_clock::time_point ended_at_{};
  int num_close_ = 0;
};

}  // namespace plait
