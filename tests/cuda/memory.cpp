// See memory.h.
// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cuda_standin {
namespace {

// As numbers that are read: NaN or -1, so that sums show it.
constexpr int fresh = 0xFF, freed = 0xDB;
constexpr unsigned char at_guard = 0xC3;

char* reserve(std::size_t bytes, int protection) {
  void* memory =
      mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "stand-in of CUDA: no address space\n");
    std::abort();
  }
  return static_cast<char*>(memory);
}

template <class T>
T* reserve_array(std::size_t count) {
  return reinterpret_cast<T*>(reserve(count * sizeof(T), PROT_READ | PROT_WRITE));
}

}  // namespace

DeviceMemory::DeviceMemory()
    : base_(reinterpret_cast<std::uint64_t>(reserve(reserved, PROT_NONE))),
      memory_(reserve(reserved, PROT_READ | PROT_WRITE)),
      block_of_(reserve_array<std::uint32_t>(reserved / granule)),
      blocks_(reserve_array<Block>(most_blocks)),
      accesses_(reserve_array<Accesses>(reserved / 8)) {}

// Last freed first, whole, so that an early reuse is likely.
std::uint64_t DeviceMemory::take(std::size_t bytes) {
  const std::size_t size = whole(bytes);
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t>& free = free_[size];
  std::uint64_t offset = end_;
  if (!free.empty()) {
    offset = free.back();
    free.pop_back();
  } else {
    if (end_ + size > reserved) return 0;
    end_ += size;
  }
  return base_ + offset + granule;
}

void DeviceMemory::give_back(std::uint64_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  free_[whole(bytes)].push_back(address - base_ - granule);
}

void DeviceMemory::begin(std::uint64_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t offset = address - base_;
  std::memset(memory_ + offset - granule, at_guard, whole(bytes));
  std::memset(memory_ + offset, fresh, bytes);
  std::uint32_t number = num_blocks_;
  if (!numbers_.empty()) {
    number = numbers_.back();
    numbers_.pop_back();
  } else {
    ++num_blocks_;
  }
  blocks_[number] = {offset, bytes};
  was_here_[offset] = bytes;
  for (std::uint64_t at = offset; at < offset + bytes; at += granule)
    block_of_[at / granule] = number;
}

std::string DeviceMemory::end(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t offset = address - base_;
  const std::uint32_t number = block_of_[offset / granule];
  const std::uint64_t bytes = blocks_[number].bytes;
  for (std::uint64_t at = offset; at < offset + bytes; at += granule) block_of_[at / granule] = 0;
  numbers_.push_back(number);
  const auto* memory = reinterpret_cast<unsigned char*>(memory_);
  std::string found;
  for (std::uint64_t at = offset - granule; at < offset; ++at)
    if (memory[at] != at_guard) found = "bytes before a block were written";
  for (std::uint64_t at = offset + bytes; at < offset - granule + whole(bytes); ++at)
    if (memory[at] != at_guard) found = "bytes behind a block were written";
  std::memset(memory_ + offset, freed, bytes);
  return found;
}

void DeviceMemory::forget_accesses() {
  madvise(accesses_, reserved / 8 * sizeof(Accesses), MADV_DONTNEED);
}

std::string DeviceMemory::describe(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  if (!has(address)) return "which is no address of this device";
  const std::uint64_t offset = address - base_;
  auto block = was_here_.upper_bound(offset);
  const auto next = block;
  if (next != was_here_.end() && next->first - offset <= granule)
    return std::to_string(next->first - offset) + " bytes before a block of " +
           std::to_string(next->second) + " bytes";
  if (block == was_here_.begin()) return "where nothing is";
  --block;
  const std::uint64_t start = offset - block->first;
  const std::string size = "a block of " + std::to_string(block->second) + " bytes";
  if (block_of_[block->first / granule] == 0)
    return "in memory that is freed, or not there yet: byte " + std::to_string(start) + " of " +
           size;
  if (start < block->second) return "byte " + std::to_string(start) + " of " + size;
  return std::to_string(start - block->second) + " bytes behind " + size;
}

void* PinnedMemory::allocate(std::size_t bytes) {
  void* data = std::aligned_alloc(granule, (bytes + granule - 1) / granule * granule);
  if (data == nullptr) return nullptr;
  std::memset(data, fresh, bytes);
  const std::lock_guard lock(mutex_);
  blocks_[reinterpret_cast<std::uint64_t>(data)] = bytes;
  in_use_ += bytes;
  return data;
}

bool PinnedMemory::free(void* data) {
  const std::lock_guard lock(mutex_);
  const auto block = blocks_.find(reinterpret_cast<std::uint64_t>(data));
  if (block == blocks_.end()) return false;
  std::memset(data, freed, block->second);
  in_use_ -= block->second;
  blocks_.erase(block);
  std::free(data);
  return true;
}

bool PinnedMemory::has(std::uint64_t address, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  auto block = blocks_.upper_bound(address);
  if (block == blocks_.begin()) return false;
  --block;
  return address - block->first <= block->second &&
         bytes <= block->second - (address - block->first);
}

std::size_t PinnedMemory::in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

// Never destroyed: streams run until the process ends.
DeviceMemory& memory_of(int device) {
  static DeviceMemory* const memories = new DeviceMemory[num_devices];
  return memories[device];
}

PinnedMemory& pinned() {
  static PinnedMemory& memory = *new PinnedMemory;
  return memory;
}

}  // namespace cuda_standin
