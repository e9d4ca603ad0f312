// Memory inside an object made by plait compile: freed blocks are kept for the next request of
// their size, so that a program that has run once allocates nothing from the system when it runs
// again.
//
// NOTE: [an object's heap] Kernels allocate small lists, and factorizations allocate workspaces,
// whose sizes no plan knows. In an object all of them come from here. It defines operator new and
// delete, and its linker redirects malloc and free here (--wrap, in link.cpp). Both are hidden, so
// nothing outside the object changes. Every block is one of malloc's own, because libstdc++, which
// is shared, may free blocks of the object, and the reverse.
// SPDX-License-Identifier: Apache-2.0
#include "tool/deployed/memory.h"

#include <malloc.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

extern "C" {
void* __real_malloc(std::size_t bytes);
void __real_free(void* block);
}

namespace plait::deployed {
namespace {

// Size classes: multiples of 16 up to 64 bytes, then four in every power of two.
constexpr int num_classes = 4 * 48;
constexpr std::size_t largest = std::size_t{1} << 46;
constexpr std::size_t bytes_of(int size_class) {
  if (size_class < 4) return std::size_t(size_class + 1) * 16;
  return std::size_t(size_class % 4 + 5) << (size_class / 4 + 3);
}
// The smallest class with room for so many bytes.
constexpr int class_above(std::size_t bytes) {
  if (bytes <= 64) return bytes == 0 ? 0 : int((bytes - 1) / 16);
  const int exponent = int(std::bit_width(bytes - 1)) - 3;  // (bytes - 1) >> exponent is 4 to 7
  return 4 * (exponent - 4) + int((bytes - 1) >> exponent);
}
static_assert(bytes_of(class_above(64)) == 64 && bytes_of(class_above(65)) == 80);
static_assert(bytes_of(class_above(128)) == 128 && bytes_of(class_above(129)) == 160);

// A free block holds the link to the next one.
struct Block {
  Block* next;
};
struct Class {
  std::mutex mutex;
  Block* first = nullptr;
};
// Constant-initialised and never destroyed, because memory is requested before main and after it.
constinit Class classes[num_classes];
constinit std::atomic<int> num_owners{0};

void* take(std::size_t bytes) noexcept {
  if (bytes > largest) return nullptr;
  const int index = class_above(bytes);
  {
    Class& all = classes[index];
    const std::lock_guard lock(all.mutex);
    if (Block* const block = all.first) {
      all.first = block->next;
      return block;
    }
  }
  return __real_malloc(bytes_of(index));
}

void keep(void* block) noexcept {
  if (!block) return;
  // The only known property of a block that was allocated elsewhere.
  const std::size_t bytes = malloc_usable_size(block);
  if (bytes < bytes_of(0) || bytes > largest || num_owners.load(std::memory_order_relaxed) == 0)
    return __real_free(block);
  int index = class_above(bytes);
  if (bytes_of(index) > bytes) --index;
  Class& all = classes[index];
  const std::lock_guard lock(all.mutex);
  all.first = new (block) Block{all.first};
}

void* take_or_throw(std::size_t bytes) {
  if (void* const block = take(bytes)) return block;
  throw std::bad_alloc();
}

}  // namespace

void begin_keeping_memory() { ++num_owners; }

void end_keeping_memory() {
  if (--num_owners > 0) return;
  for (Class& all : classes) {
    const std::lock_guard lock(all.mutex);
    while (Block* const block = all.first) {
      all.first = block->next;
      __real_free(block);
    }
  }
}

}  // namespace plait::deployed

using namespace plait::deployed;

extern "C" {
void* __wrap_malloc(std::size_t bytes) { return take(bytes); }
void __wrap_free(void* block) { keep(block); }
}

void* operator new(std::size_t bytes) { return take_or_throw(bytes); }
void* operator new[](std::size_t bytes) { return take_or_throw(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return take(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return take(bytes); }
void operator delete(void* block) noexcept { keep(block); }
void operator delete[](void* block) noexcept { keep(block); }
void operator delete(void* block, std::size_t) noexcept { keep(block); }
void operator delete[](void* block, std::size_t) noexcept { keep(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { keep(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { keep(block); }
