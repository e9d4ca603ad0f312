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

// The bytes that a value takes up, to where the next one may begin: on a host, and on devices,
// whose libraries want their memory to begin at multiples of 256 bytes (cuBLASLt takes no other).
using Room = std::int64_t (*)(std::int64_t bytes);
std::int64_t room_on_host(std::int64_t bytes);
std::int64_t room_on_device(std::int64_t bytes);

// Assigns aligned offsets such that values live at the same step do not overlap. Returns the bytes
// of the arena.
std::int64_t place_in_arena(std::span<Lifetime> lifetimes, Room room = room_on_host);

}  // namespace plait::compile_passes
