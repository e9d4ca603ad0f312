// Places in one piece of memory for values that do not all live at once. See arena.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace plait::compile_passes {

// What needs so many bytes from one step to another, both included.
struct Lifetime {
  std::int64_t bytes;
  int begin, end;
  std::int64_t offset = 0;  // where it is placed
};

// Places them, aligned, so that none overlaps another that lives at the same step; gives the bytes
// of all together.
std::int64_t place_in_arena(std::span<Lifetime> lifetimes);

}  // namespace plait::compile_passes
