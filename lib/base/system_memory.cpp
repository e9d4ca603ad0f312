// See system_memory.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/system_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace plait::memory {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

// The place of a block in its page, one after the other.
std::size_t next_place() noexcept {
  static std::atomic<std::size_t> count{0};
  return count.fetch_add(1, std::memory_order_relaxed) * stagger * alignment % page;
}

void* allocate_aligned(std::size_t bytes) noexcept {
  void* pointer = nullptr;
  return posix_memalign(&pointer, alignment, bytes) == 0 ? pointer : nullptr;
}

// What begins within its memory has the beginning just before it.
char*& beginning(char* block) noexcept { return reinterpret_cast<char**>(block)[-1]; }

void* allocate_staggered(std::size_t bytes) noexcept {
  auto* begin = static_cast<char*>(allocate_aligned(alignment + page + bytes));
  if (!begin) return nullptr;
  const auto first = reinterpret_cast<std::uintptr_t>(begin) + alignment;
  char* block = begin + alignment + (next_place() - first) % page;
  beginning(block) = begin;
  return block;
}

// An aligned start lets the kernel use huge pages for the block: 512 times fewer faults.
void* allocate_huge(std::size_t bytes) noexcept {
  const std::size_t reserved = bytes + huge_page;
  void* mapping =
      mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  char* begin = static_cast<char*>(mapping);
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t before = (huge_page - address % huge_page) % huge_page;
  const std::size_t after = huge_page - before;
  if (before > 0) munmap(begin, before);
  if (after > 0) munmap(begin + before + bytes, after);
  madvise(begin + before, bytes, MADV_HUGEPAGE);
  return begin + before;
}

}  // namespace

void* allocate_from_system(std::size_t bytes) noexcept {
  if (bytes < smallest_staggered || !caching) return allocate_aligned(bytes);
  if (bytes < smallest_huge) return allocate_staggered(bytes);
  auto* begin = static_cast<char*>(allocate_huge(bytes + page));
  return begin ? begin + next_place() : nullptr;
}

void free_to_system(void* pointer, std::size_t bytes) noexcept {
  auto* block = static_cast<char*>(pointer);
  if (bytes < smallest_staggered || !caching)
    std::free(pointer);
  else if (bytes < smallest_huge)
    std::free(beginning(block));
  else
    munmap(block - reinterpret_cast<std::uintptr_t>(block) % huge_page, bytes + page);
}

}  // namespace plait::memory
