// Whether the pool's threads are still spinning for work: see NOTE: [waiting threads] in pool.cpp.
//
// Short kernels lie between the products of a loop's step. If one thread ran them, the others would
// fall asleep meanwhile, and each product would pay for waking them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace plait {

// The grain of a loop whose results do not depend on its ranges. Just after this thread has run a
// loop on all threads, entering another takes 1 us, and the grain is a fifth: about 4 us.
std::int64_t grain_while_spinning(std::int64_t grain);

}  // namespace plait
