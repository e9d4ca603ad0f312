// Combines hashes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace plait {

inline std::size_t hash_combine(std::size_t seed, std::size_t value) {
  return seed ^ (value + 0x9e3779b97f4a7c15u + (seed << 6) + (seed >> 2));
}

}  // namespace plait
