// The caching allocator for users: how much it holds, its limit, and how to release it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace plait {

struct MemoryStats {
  std::size_t bytes_in_use;  // of arrays: requested and not yet freed
  std::size_t bytes_cached;  // freed and kept for the next arrays
  std::size_t cache_limit;   // the limit of bytes_cached
};
MemoryStats memory_stats();
// Returns cached memory, of devices too, to the system; but small blocks of other threads.
void clear_memory();
// Sets how many bytes may be cached, and returns the previous limit. The default is a quarter of
// the memory of the machine, or of its control group, and at most 4 GiB. When memory runs short, no
// large block is kept.
std::size_t set_cache_limit(std::size_t bytes);

// Memory for objects that are not arrays: from the same cache, and not counted as in use.
void* allocate_object(std::size_t bytes);
void deallocate_object(void* pointer, std::size_t bytes) noexcept;

}  // namespace plait
