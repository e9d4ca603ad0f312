// Memory of a device: blocks that streams have given back, in front of a pool of the driver's.
//
// What a stream has given back is free at once for what that stream is given later, since the
// stream comes there behind what used it. Other streams get it through the pool, which orders them.
// Of the blocks of a size, the one of the lowest address is taken first: a program that is called
// again, with the same blocks free, gets the same addresses, in whatever order they were given back
// (captures.h).
//
// PLAIT_DEVICE_MEMORY limits what may be in use. PLAIT_DEVICE_CACHE=0 keeps no blocks, and rounds
// no sizes up: for tools that check accesses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/driver.h>

#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "api.h"

namespace plait::cuda {

struct DeviceState;

// What a block for so many bytes takes: at most an eighth more, if it is no very small one.
std::size_t block_bytes(std::size_t bytes);
// How much may be in use of a device with so many bytes, by PLAIT_DEVICE_MEMORY: "12GB", "512MiB",
// "50%". Absent: all that there is. ValueError for other texts.
std::optional<std::size_t> memory_limit(std::size_t total);

// What a stream has given back. Guarded by the memory of its device; never destroyed, as streams
// are not.
class KeptBlocks {
 public:
  KeptBlocks() = default;
  KeptBlocks(const KeptBlocks&) = delete;

 private:
  friend class DeviceMemory;
  using Addresses = std::vector<CUdeviceptr>;  // a heap, the lowest first
  struct Lists {
    std::array<Addresses, 80> small;         // by class
    std::map<std::size_t, Addresses> large;  // by size
    std::size_t bytes = 0;
    Addresses& of(std::size_t block);  // of this many bytes
    std::size_t largest() const;
  };
  CUstream stream_ = nullptr;
  Lists lists_;
};

// Thread-safe.
class DeviceMemory {
 public:
  // total: the bytes of the device.
  DeviceMemory(DeviceState& state, std::size_t total);
  void add(KeptBlocks& blocks, CUstream stream);  // of a new stream

  // For use in the order of the stream. Null when none is left, even when all that is kept is given
  // back and the streams of the device have come past it.
  void* allocate(KeptBlocks& blocks, std::size_t bytes);
  void deallocate(KeptBlocks& blocks, void* data, std::size_t bytes) noexcept;
  void release();  // gives back all that is kept, and waits for the streams of the device
  Driver::MemoryStatistics statistics() const;

 private:
  std::size_t block_for(std::size_t bytes) const { return keeps_ ? block_bytes(bytes) : bytes; }
  // With the mutex held.
  CUdeviceptr take_kept(KeptBlocks& blocks, std::size_t block);  // 0: there is none
  bool begin(std::size_t block);                                 // false beyond the limit
  void note_taken(std::size_t block);

  CUdeviceptr take_from_pool(std::size_t block, CUstream stream);  // 0: none is left
  void give_to_pool(CUdeviceptr data, CUstream stream) noexcept;
  void give_back_kept();  // in the order of its streams
  void wait_for_streams();
  void trim();

  DeviceState& state_;
  const bool keeps_;
  const std::size_t limit_;
  mutable std::mutex mutex_;
  std::vector<KeptBlocks*> streams_;
  std::size_t kept_ = 0;  // bytes
  Driver::MemoryStatistics counted_;
};

}  // namespace plait::cuda
