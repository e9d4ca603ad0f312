// Offsets in one block of memory for values that are not all live at once. See arena.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace plait::compile_passes {

// A value that is live from one step to another, both included.
struct Lifetime {
  std::int64_t bytes;
  int begin, end;
  std::int64_t offset = 0;  // in the arena
};

// Assigns aligned offsets such that values live at the same step do not overlap. Returns the bytes
// of the arena.
std::int64_t place_in_arena(std::span<Lifetime> lifetimes);

}  // namespace plait::compile_passes
