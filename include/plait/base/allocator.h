// Memory for arrays: 64-byte aligned blocks from a caching allocator.
//
// Freed blocks are kept by size class and handed out again, so that large outputs do not incur page
// faults at every call. The cache is bounded and can be emptied. Thread-safe. On failure, a
// MemoryError names the number of bytes asked for, and nothing else changes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/stream.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace plait {

void* allocate(std::size_t bytes);                           // for 0 bytes too, a distinct pointer
void deallocate(void* pointer, std::size_t bytes) noexcept;  // bytes as given to allocate
std::size_t allocated_bytes();  // live: what was asked for and not yet given back
std::size_t cached_bytes();     // freed and kept; at most a quarter of memory, and 4 GiB
// Returns cached blocks to the system, except the small ones (at most 2 MiB) of each other thread.
// Called before an allocation fails.
void release_cached_memory();

class Placement;  // lib/base/placement.h

// Reference-counted memory: our own block, foreign memory with a release function, or memory of a
// device, which is given back once every stream that uses it has come past its last use.
class Storage {
 public:
  Storage() = default;
  static Storage allocate(std::size_t bytes);
  // Of the stream's device, for use in its order. MemoryError names the device.
  static Storage allocate(std::size_t bytes, const Stream& stream);
  // Foreign memory (NumPy, DLPack): release runs once, on the thread that drops the last reference.
  // It must not throw.
  static Storage foreign(void* data, std::size_t bytes, std::function<void()> release);
  Storage(const Storage& other) noexcept : block_(other.block_) {
    if (block_) ++block_->references;
  }
  Storage(Storage&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Storage& operator=(Storage other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Storage() {
    if (block_ && --block_->references == 0) destroy(block_);
  }
  explicit operator bool() const { return block_ != nullptr; }
  void* data() const { return block_ ? block_->data : nullptr; }
  std::size_t bytes() const { return block_ ? block_->bytes : 0; }
  bool is_unique() const { return block_ && block_->references == 1; }
  bool is_foreign() const { return block_ && block_->release && !block_->placement; }
  Device device() const { return block_ ? block_->device : Device{}; }

  // Uses by work of a stream: before it is submitted, the stream waits; afterwards the use is
  // noted. Nothing on the host.
  void wait_to_read(const Stream& stream) const;   // for what writes the memory
  void wait_to_write(const Stream& stream) const;  // for what writes or reads it
  void note_read(const Stream& stream) const;
  void note_written(const Stream& stream) const;

 private:
  struct Block {
    std::atomic<std::int32_t> references;
    Device device;
    void* data;
    std::size_t bytes;
    std::function<void()> release;   // null for our own memory on the host
    Placement* placement = nullptr;  // null for memory on the host
  };
  explicit Storage(Block* block) : block_(block) {}
  static void destroy(Block* block) noexcept;
  Block* block_ = nullptr;
};

}  // namespace plait
