// Blocks of memory: their size classes, and their allocation by the system.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>

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

// Memory allocated and freed as a whole; null when the system has none.
void* allocate_from_system(std::size_t bytes) noexcept;
void free_to_system(void* pointer, std::size_t bytes) noexcept;

}  // namespace plait::memory
