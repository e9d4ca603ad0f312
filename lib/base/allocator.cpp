// The caching allocator and reference-counted storage.
//
// Sizes are rounded up to classes, four per power of two. A freed block of at most 32 KiB goes to a
// list of its thread, without locks. The overflow of these lists, and every larger block, goes to
// one shared cache. It is bounded: it drops the least recently freed blocks first, and all of them
// when memory runs short. A miss in both asks the system.
//
// Nothing here is ever destroyed: threads and static destructors free arrays until the very end.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/allocator.h>

#include <plait/base/error.h>
#include <plait/base/memory.h>

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "base/cgroup.h"
#include "base/memory_pressure.h"
#include "base/placement.h"
#include "base/system_memory.h"

namespace plait {
namespace {

using namespace memory;

// The largest storage that shares one block with its data; beyond, rounding up would waste too
// much.
constexpr std::size_t largest_inline = 1024;

// A freed block holds its own links.
struct FreeBlock {
  FreeBlock* next;
};

// A free larger block is in two lists.
struct LargeBlock {
  LargeBlock *previous, *next;  // of the class; next was freed earlier
  LargeBlock *newer, *older;    // of all classes, by time of freeing
  int size_class;
};

// A counter that one thread changes and any thread reads, without locked instructions.
class OwnedCounter {
 public:
  std::int64_t get() const { return value_.load(std::memory_order_relaxed); }
  void add(std::int64_t amount) { value_.store(get() + amount, std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

struct FreeList {
  FreeBlock* first = nullptr;
  OwnedCounter length;

  bool is_empty() const { return first == nullptr; }
  void push(void* pointer) {
    first = new (pointer) FreeBlock{first};
    length.add(1);
  }
  void* pop() {
    length.add(-1);
    return std::exchange(first, first->next);
  }
};

std::size_t default_cache_limit() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  std::int64_t memory = pages > 0 && page > 0 ? std::int64_t{pages} * page : std::int64_t{1} << 30;
  memory = std::min(memory, cgroup_memory().value_or(memory));
  return static_cast<std::size_t>(std::min<std::int64_t>(memory / 4, std::int64_t{4} << 30));
}

enum class ThreadPhase : std::uint8_t { unseen, alive, exited };

// The cache of one thread. Trivially destructible, so that frees after the thread's destructors
// have run still find it.
struct ThreadCache {
  std::array<FreeList, num_small_classes> lists;
  OwnedCounter live_bytes;
  ThreadCache *previous = nullptr, *next = nullptr;  // of the threads that are alive
  ThreadPhase phase = ThreadPhase::unseen;

  FreeList& list(int size_class) { return lists[static_cast<std::size_t>(size_class)]; }
};

constinit thread_local ThreadCache thread_cache;

// How many blocks of a class a thread keeps: 64 KiB of each class, at most 128 blocks.
constexpr std::int64_t thread_limit(int size_class) {
  return std::clamp<std::int64_t>((64 << 10) / static_cast<int>(class_bytes(size_class)), 2, 128);
}

// The cache of all threads. Every member is guarded by mutex, which is held for a few instructions:
// system calls happen outside.
class SharedCache {
 public:
  std::mutex mutex;
  ThreadCache* threads = nullptr;
  std::int64_t exited_live_bytes = 0;  // allocated less freed by threads that have exited

  // A block of the class, or null.
  void* take(int size_class) {
    if (size_class >= num_small_classes) {
      LargeBlock* block = large_[static_cast<std::size_t>(size_class)];
      if (block) unlink(block);
      return block;
    }
    FreeList& list = small_[static_cast<std::size_t>(size_class)];
    if (list.is_empty()) return nullptr;
    small_bytes_ -= class_bytes(size_class);
    return list.pop();
  }

  // False when the block is refused: the caller returns it to the system.
  bool keep_small(void* block, int size_class) {
    const std::size_t bytes = class_bytes(size_class);
    if (small_bytes_ + bytes > limit_ / 8) return false;  // the rest is for large ones
    small_[static_cast<std::size_t>(size_class)].push(block);
    small_bytes_ += bytes;
    return true;
  }

  void keep_large(void* pointer, int size_class) {
    LargeBlock*& first = large_[static_cast<std::size_t>(size_class)];
    first = new (pointer) LargeBlock{nullptr, first, nullptr, newest_, size_class};
    if (first->next) first->next->previous = first;
    (newest_ ? newest_->newer : oldest_) = first;
    newest_ = first;
    large_bytes_ += class_bytes(size_class);
  }

  // Shrinks the large blocks to at most `bytes` in total. Returns the dropped ones, linked by next.
  LargeBlock* evict(std::size_t bytes) {
    LargeBlock* dropped = nullptr;
    while (large_bytes_ > bytes) {
      LargeBlock* block = oldest_;
      unlink(block);
      block->next = dropped;
      dropped = block;
    }
    return dropped;
  }

  std::size_t bytes() const { return small_bytes_ + large_bytes_; }
  std::size_t limit() const { return limit_; }
  std::size_t large_limit() const { return limit_ - limit_ / 8; }
  void set_limit(std::size_t bytes) { limit_ = bytes; }

 private:
  void unlink(LargeBlock* block) {
    if (block->next) block->next->previous = block->previous;
    if (block->previous)
      block->previous->next = block->next;
    else
      large_[static_cast<std::size_t>(block->size_class)] = block->next;
    (block->newer ? block->newer->older : newest_) = block->older;
    (block->older ? block->older->newer : oldest_) = block->newer;
    large_bytes_ -= class_bytes(block->size_class);
  }

  std::array<FreeList, num_small_classes> small_;
  std::array<LargeBlock*, num_classes> large_ = {};
  LargeBlock *newest_ = nullptr, *oldest_ = nullptr;
  std::size_t small_bytes_ = 0, large_bytes_ = 0;
  std::size_t limit_ = default_cache_limit();
};

SharedCache& shared();

std::int64_t live_bytes_of_other_threads() {
  std::int64_t bytes = 0;
  for (const ThreadCache* thread = shared().threads; thread; thread = thread->next)
    if (thread != &thread_cache) bytes += thread->live_bytes.get();
  return bytes;
}

// The mutex is held around fork, so that the child does not inherit it locked by a thread that it
// does not have. In the child the lists of other threads are lost (one may be half changed), and
// what those threads allocated stays live.
void before_fork() {
  shared().mutex.lock();
  shared().exited_live_bytes += live_bytes_of_other_threads();
}

void after_fork_in_parent() {
  shared().exited_live_bytes -= live_bytes_of_other_threads();
  shared().mutex.unlock();
}

void after_fork_in_child() {
  thread_cache.previous = thread_cache.next = nullptr;
  shared().threads = thread_cache.phase == ThreadPhase::alive ? &thread_cache : nullptr;
  shared().mutex.unlock();
}

SharedCache& shared() {
  static SharedCache& cache = *[] {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    return new SharedCache;
  }();
  return cache;
}

void free_all(LargeBlock* block) noexcept {
  while (block) {
    LargeBlock* next = block->next;
    free_to_system(block, class_bytes(block->size_class));
    block = next;
  }
}

// Moves blocks of a thread's list to the shared cache until keep are left.
[[gnu::noinline]] void flush(FreeList& list, int size_class, std::int64_t keep) noexcept {
  FreeList refused;
  {
    const std::lock_guard lock(shared().mutex);
    while (list.length.get() > keep)
      if (void* block = list.pop(); !shared().keep_small(block, size_class)) refused.push(block);
  }
  while (!refused.is_empty()) free_to_system(refused.pop(), class_bytes(size_class));
}

void flush_all(ThreadCache& thread) noexcept {
  for (int i = 0; i < num_small_classes; ++i)
    if (!thread.list(i).is_empty()) flush(thread.list(i), i, 0);
}

// Fills an empty list of the thread from the shared cache, to half, so that the next frees fit.
[[gnu::noinline]] void refill(FreeList& list, int size_class) noexcept {
  const std::lock_guard lock(shared().mutex);
  while (list.length.get() < thread_limit(size_class) / 2) {
    void* block = shared().take(size_class);
    if (!block) return;
    list.push(block);
  }
}

// Registers the thread's cache for counting while the thread lives.
struct ThreadRegistration {
  ThreadRegistration() {
    const std::lock_guard lock(shared().mutex);
    thread_cache.next = shared().threads;
    if (thread_cache.next) thread_cache.next->previous = &thread_cache;
    shared().threads = &thread_cache;
    thread_cache.phase = ThreadPhase::alive;
  }
  ~ThreadRegistration() {
    flush_all(thread_cache);
    const std::lock_guard lock(shared().mutex);
    thread_cache.phase = ThreadPhase::exited;
    shared().exited_live_bytes += thread_cache.live_bytes.get();
    if (thread_cache.next) thread_cache.next->previous = thread_cache.previous;
    if (thread_cache.previous)
      thread_cache.previous->next = thread_cache.next;
    else
      shared().threads = thread_cache.next;
  }
};

[[gnu::noinline]] void register_thread() {
  static thread_local const ThreadRegistration registration;
  (void)registration;
}

// This thread's cache; null once the thread exits, when nothing would flush it again. Looked up
// once per call: in a shared library the lookup costs as much as all the rest.
ThreadCache* own_cache() {
  ThreadCache& cache = thread_cache;
  if (cache.phase == ThreadPhase::unseen) [[unlikely]]
    register_thread();
  return cache.phase == ThreadPhase::alive ? &cache : nullptr;
}

void count_live(ThreadCache* thread, std::int64_t bytes) noexcept {
  if (thread) [[likely]] {
    thread->live_bytes.add(bytes);
    return;
  }
  const std::lock_guard lock(shared().mutex);
  shared().exited_live_bytes += bytes;
}

[[gnu::noinline]] void* take_from_system(int size_class, std::size_t bytes) noexcept {
  // Without caching, the exact size lets a sanitizer detect an access one byte past the end.
  const std::size_t size = caching ? class_bytes(size_class) : std::max<std::size_t>(bytes, 1);
  if (void* block = allocate_from_system(size)) return block;
  release_cached_memory();
  return allocate_from_system(size);
}

// A block of at least bytes, not counted as live; null when the system has none.
void* take_block(ThreadCache* thread, std::size_t bytes) noexcept {
  const int size_class = class_of(bytes);
  if (!caching) return take_from_system(size_class, bytes);
  if (size_class < num_small_classes && thread) [[likely]] {
    FreeList& list = thread->list(size_class);
    if (list.is_empty()) [[unlikely]]
      refill(list, size_class);
    if (!list.is_empty()) [[likely]]
      return list.pop();
  } else {
    const std::lock_guard lock(shared().mutex);
    if (void* block = shared().take(size_class)) return block;
  }
  return take_from_system(size_class, bytes);
}

void give_block(ThreadCache* thread, void* block, std::size_t bytes) noexcept {
  const int size_class = class_of(bytes);
  if (!caching) {
    free_to_system(block, bytes);
  } else if (size_class < num_small_classes && thread) [[likely]] {
    FreeList& list = thread->list(size_class);
    list.push(block);
    const std::int64_t limit = thread_limit(size_class);
    if (list.length.get() > limit) [[unlikely]]
      flush(list, size_class, limit / 2);
  } else if (size_class < num_small_classes) {
    FreeList list;
    list.push(block);
    flush(list, size_class, 0);
  } else {
    LargeBlock* dropped = nullptr;
    {
      const bool is_short = bytes >= smallest_huge && memory_is_short();
      const std::lock_guard lock(shared().mutex);
      shared().keep_large(block, size_class);
      dropped = shared().evict(is_short ? 0 : shared().large_limit());
    }
    free_all(dropped);
  }
}

[[noreturn, gnu::cold]] void throw_out_of_memory(std::size_t bytes) {
  throw MemoryError(
      "cannot allocate " + std::to_string(bytes) + " bytes",
      "work on smaller pieces (a smaller batch, vmap with chunk=), or drop arrays that "
      "are no longer needed");
}

}  // namespace

void* allocate(std::size_t bytes) {
  ThreadCache* thread = own_cache();
  void* pointer = bytes <= largest_request ? take_block(thread, bytes) : nullptr;
  if (!pointer) [[unlikely]]
    throw_out_of_memory(bytes);
  count_live(thread, static_cast<std::int64_t>(bytes));
  return pointer;
}

void deallocate(void* pointer, std::size_t bytes) noexcept {
  if (!pointer) return;
  ThreadCache* thread = own_cache();
  count_live(thread, -static_cast<std::int64_t>(bytes));
  give_block(thread, pointer, bytes);
}

void* allocate_object(std::size_t bytes) {
  void* pointer = take_block(own_cache(), bytes);
  if (!pointer) [[unlikely]]
    throw_out_of_memory(bytes);
  return pointer;
}

void deallocate_object(void* pointer, std::size_t bytes) noexcept {
  if (pointer) give_block(own_cache(), pointer, bytes);
}

std::size_t cached_bytes() {
  const std::lock_guard lock(shared().mutex);
  std::size_t bytes = shared().bytes();
  for (const ThreadCache* thread = shared().threads; thread; thread = thread->next)
    for (int i = 0; i < num_small_classes; ++i)
      bytes += class_bytes(i) *
               static_cast<std::size_t>(thread->lists[static_cast<std::size_t>(i)].length.get());
  return bytes;
}

std::size_t allocated_bytes() {
  const std::lock_guard lock(shared().mutex);
  std::int64_t bytes = shared().exited_live_bytes;
  for (const ThreadCache* thread = shared().threads; thread; thread = thread->next)
    bytes += thread->live_bytes.get();
  return static_cast<std::size_t>(bytes);
}

MemoryStats memory_stats() {
  const std::size_t in_use = allocated_bytes(), cached = cached_bytes();
  const std::lock_guard lock(shared().mutex);
  return {in_use, cached, shared().limit()};
}

void clear_memory() {
  release_cached_memory();
  release_memory_of_devices();
}

std::size_t set_cache_limit(std::size_t bytes) {
  LargeBlock* dropped = nullptr;
  std::size_t before = 0;
  {
    const std::lock_guard lock(shared().mutex);
    before = shared().limit();
    shared().set_limit(bytes);
    dropped = shared().evict(shared().large_limit());
  }
  free_all(dropped);
  return before;
}

void release_cached_memory() {
  flush_all(thread_cache);
  SharedCache& cache = shared();
  LargeBlock* dropped = nullptr;
  {
    const std::lock_guard lock(cache.mutex);
    dropped = cache.evict(0);
  }
  free_all(dropped);
  for (int i = 0; i < num_small_classes; ++i) {
    while (true) {
      void* block = nullptr;
      {
        const std::lock_guard lock(cache.mutex);
        block = cache.take(i);
      }
      if (!block) break;
      free_to_system(block, class_bytes(i));
    }
  }
}

Storage Storage::allocate(std::size_t bytes) {
  static_assert(sizeof(Block) <= alignment);
  if (bytes <= largest_inline) {
    ThreadCache* thread = own_cache();
    void* block = take_block(thread, alignment + bytes);
    if (!block) throw_out_of_memory(bytes);
    count_live(thread, static_cast<std::int64_t>(bytes));
    return Storage(new (block) Block{1, {}, static_cast<char*>(block) + alignment, bytes, nullptr});
  }
  void* data = plait::allocate(bytes);
  void* block = take_block(own_cache(), sizeof(Block));
  if (!block) {
    plait::deallocate(data, bytes);
    throw_out_of_memory(bytes);
  }
  return Storage(new (block) Block{1, {}, data, bytes, nullptr});
}

Storage Storage::foreign(void* data, std::size_t bytes, std::function<void()> release) {
  if (!release) release = [] {};
  void* block = take_block(own_cache(), sizeof(Block));
  if (!block) {
    release();  // the memory was handed over, so it is released in any case
    throw_out_of_memory(sizeof(Block));
  }
  return Storage(new (block) Block{1, {}, data, bytes, std::move(release)});
}

void Storage::destroy(Block* block) noexcept {
  if (block->release) {
    block->release();
  } else if (block->bytes <= largest_inline) {
    const std::size_t bytes = block->bytes;
    block->~Block();
    ThreadCache* thread = own_cache();
    count_live(thread, -static_cast<std::int64_t>(bytes));
    return give_block(thread, block, alignment + bytes);
  } else {
    plait::deallocate(block->data, block->bytes);
  }
  block->~Block();
  give_block(own_cache(), block, sizeof(Block));
}

}  // namespace plait
