// Whether the pool's threads still wait for work by spinning: see NOTE: [waiting threads] in
// pool.cpp.
//
// Between the products of a loop's step lie short kernels. Run by one thread, they last until the
// other ones sleep, and each product then pays for waking them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace plait {

// The grain of a loop whose results do not depend on its ranges: a fifth of it, about 4 us, just
// after a loop of all threads on this one, where entering another takes 1 us.
std::int64_t grain_while_awake(std::int64_t grain);

}  // namespace plait
