// Blocks of memory: their size classes, and their allocation by the system.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#define PLAIT_NO_CACHE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PLAIT_NO_CACHE 1
#endif
#endif

namespace plait::memory {

#ifdef PLAIT_NO_CACHE
constexpr bool caching = false;  // a cached block would hide a use after free
#else
constexpr bool caching = true;
#endif

constexpr std::size_t alignment = 64;
constexpr std::size_t largest_request = std::size_t{1} << 46;  // beyond any address space
constexpr std::size_t largest_small = 32 << 10;
constexpr std::size_t smallest_huge = 4 << 20;
constexpr std::size_t page = 4096, smallest_staggered = 32 << 10;

// Classes 0 to 3 are 64, 128, 192, 256 bytes; from there on there are four in every power of two:
// 320 384 448 512 640 768 896 1024 ...
constexpr int class_of(std::size_t bytes) {
  if (bytes <= 4 * alignment) return bytes == 0 ? 0 : static_cast<int>((bytes - 1) / alignment);
  const std::size_t units = (bytes - 1) / alignment;                 // >= 4
  const int exponent = static_cast<int>(std::bit_width(units)) - 3;  // units >> exponent is 4..7
  return 4 * exponent + static_cast<int>(units >> exponent);
}

constexpr std::size_t class_bytes(int size_class) {
  if (size_class < 4) return (static_cast<std::size_t>(size_class) + 1) * alignment;
  const int exponent = size_class / 4 - 1;
  return ((static_cast<std::size_t>(size_class % 4) + 5) << exponent) * alignment;
}

constexpr int num_small_classes = class_of(largest_small) + 1;
constexpr int num_classes = class_of(largest_request) + 1;
static_assert(class_bytes(num_small_classes - 1) == largest_small);

// Arrays of whole pages that are used together must not begin at the same place of their pages, or
// one line on: a processor compares the last twelve bits of addresses first, takes a load behind a
// store to another array for a load of what is stored, and waits (Agner Fog, Optimizing
// subroutines, 2024, section 12.8; a stencil over three arrays 1.2 times as long). So each begins
// these lines further in its page than the one before.
constexpr std::size_t stagger = 17;
// The bytes from the one to the next in a block that holds several.
constexpr std::int64_t staggered(std::int64_t bytes) {
  constexpr auto line = std::int64_t(alignment);
  bytes = (bytes + line - 1) / line * line;
  if (bytes < std::int64_t(smallest_staggered)) return bytes;
  const std::int64_t lines = std::int64_t(page) / line, excess = bytes / line % lines;
  return bytes + (std::int64_t(stagger) + lines - excess) % lines * line;
}

// Memory allocated and freed as a whole, with the same number of bytes, and staggered; null when
// the system has none.
void* allocate_from_system(std::size_t bytes) noexcept;
void free_to_system(void* pointer, std::size_t bytes) noexcept;

}  // namespace plait::memory
