// What the caching allocator holds, for users: how much, how much it may, and how to give it back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace plait {

struct MemoryStats {
  std::size_t bytes_in_use;  // of arrays: what was asked for and not yet given back
  std::size_t bytes_cached;  // freed and kept for the next arrays
  std::size_t cache_limit;   // that bytes_cached stays below
};
MemoryStats memory_stats();
// Returns what is cached to the system, but for the small blocks of other threads.
void clear_memory();
// How much may be kept, and what it was before. At first a quarter of the memory that the machine,
// or the control group, has, and at most 4 GiB. When memory runs short nothing large is kept.
std::size_t set_cache_limit(std::size_t bytes);

// Memory for what is no array: from the same cache, not among the bytes in use.
void* allocate_object(std::size_t bytes);
void deallocate_object(void* pointer, std::size_t bytes) noexcept;

}  // namespace plait
