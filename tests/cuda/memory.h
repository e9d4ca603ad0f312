// Memory of the stand-in's devices, and the host memory that they see.
//
// Addresses of a device fault when the host follows them; the memory behind them lies at a fixed
// distance. A block is there from the moment its stream comes to the allocation until it comes to
// the end of it. Blocks are poisoned at both, and have guards around them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace cuda_standin {

inline constexpr std::size_t granule = 256;  // blocks and guards are multiples of it

// Who accessed what of 8 neighbouring bytes lately, for races.
struct Accesses {
  std::uint64_t last[4];  // packed: see on_cpu/races.h
};

class DeviceMemory {
 public:
  static constexpr std::size_t reserved = std::size_t{1} << 33;

  DeviceMemory();
  bool has(std::uint64_t address) const { return address - base_ < reserved; }

  // Of addresses alone: at the time of the call.
  std::uint64_t take(std::size_t bytes);
  void give_back(std::uint64_t address, std::size_t bytes);
  // When the stream comes to it.
  void begin(std::uint64_t address, std::size_t bytes);
  // What was written where nothing may write; empty: nothing.
  [[nodiscard]] std::string end(std::uint64_t address);

  // Where the memory is; nullptr unless all of it lies in one block that is there.
  char* find(std::uint64_t address, std::size_t bytes) const {
    const std::uint64_t offset = address - base_;
    if (offset >= reserved) return nullptr;
    const std::uint32_t number = block_of_[offset / granule];
    if (number == 0) return nullptr;
    const Block& block = blocks_[number];
    if (offset - block.offset >= block.bytes || bytes > block.bytes - (offset - block.offset))
      return nullptr;
    return memory_ + offset;
  }
  Accesses* accesses(std::uint64_t address) const { return accesses_ + (address - base_) / 8; }
  void forget_accesses();
  // For messages: "4 bytes behind a block of 400 bytes".
  std::string describe(std::uint64_t address) const;

 private:
  struct Block {
    std::uint64_t offset = 0, bytes = 0;
  };
  static constexpr std::size_t most_blocks = std::size_t{1} << 20;
  static std::size_t whole(std::size_t bytes) {
    return (bytes + granule - 1) / granule * granule + 2 * granule;
  }

  std::uint64_t base_;
  char* memory_;
  std::uint32_t* block_of_;  // of a granule: its number; 0: none is there
  Block* blocks_;
  Accesses* accesses_;
  mutable std::mutex mutex_;
  std::uint64_t end_ = 0;
  std::vector<std::uint32_t> numbers_;  // free again
  std::uint32_t num_blocks_ = 1;
  std::map<std::size_t, std::vector<std::uint64_t>> free_;  // offsets, by size
  std::map<std::uint64_t, std::uint64_t> was_here_;         // bytes of blocks, by offset
};

// Host memory that devices copy from and to.
class PinnedMemory {
 public:
  void* allocate(std::size_t bytes);
  bool free(void* data);  // false: it is none
  bool has(std::uint64_t address, std::size_t bytes) const;
  std::size_t in_use() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::size_t> blocks_;
  std::size_t in_use_ = 0;
};

inline constexpr int num_devices = 2;
DeviceMemory& memory_of(int device);
PinnedMemory& pinned();

}  // namespace cuda_standin
