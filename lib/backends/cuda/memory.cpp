// See memory.h.
// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <plait/base/error.h>
#include <plait/base/interrupt.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <limits>
#include <new>
#include <string_view>
#include <thread>
#include <utility>

#include "device_state.h"
#include "driver.h"

namespace plait::cuda {
namespace {

constexpr std::size_t granule = 256, first_large = std::size_t{1} << 20;
constexpr std::size_t largest_request = std::size_t{1} << 60;

// Multiples of the granule up to 8 of them, then 8 sizes for each power of two.
constexpr std::size_t small_class(std::size_t bytes) {
  const std::size_t last = (std::max<std::size_t>(bytes, 1) - 1) / granule;
  if (last < 8) return last;
  const int shift = std::bit_width(last) - 4;
  return std::size_t(shift) * 8 + (last >> shift);
}
constexpr std::size_t bytes_of_class(std::size_t number) {
  if (number < 8) return (number + 1) * granule;
  return (number % 8 + 9) * granule << (number / 8 - 1);
}
static_assert(small_class(first_large) == 79 && bytes_of_class(79) == first_large);

// What memory_limit reads: a number and a unit.
struct Amount {
  double number;
  std::string_view unit;
};
std::optional<Amount> amount_of(std::string_view text) {
  Amount amount{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount.number);
  if (error != std::errc() || !(amount.number > 0)) return {};
  amount.unit = text.substr(std::size_t(end - text.data()));
  return amount;
}

// The bytes of a unit; 0 for what is none.
double bytes_of_unit(std::string_view unit, std::size_t total) {
  constexpr std::pair<std::string_view, double> units[] = {
      {"", 1},      {"B", 1},        {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
      {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  if (unit == "%") return double(total) / 100;
  for (const auto& [name, bytes] : units)
    if (name == unit) return bytes;
  return 0;
}

bool keeps_blocks() {
  const char* text = std::getenv("PLAIT_DEVICE_CACHE");
  return !text || std::string_view(text) != "0";
}

}  // namespace

// Large sizes are multiples of a sixteenth of their power of two, or of 2 MiB if that is less.
std::size_t block_bytes(std::size_t bytes) {
  if (bytes <= first_large) return bytes_of_class(small_class(bytes));
  const std::size_t unit =
      std::min<std::size_t>(std::bit_floor(bytes - 1) / 16, std::size_t{2} << 20);
  return (bytes + unit - 1) / unit * unit;
}

std::optional<std::size_t> memory_limit(std::size_t total) {
  const char* const text = std::getenv("PLAIT_DEVICE_MEMORY");
  if (!text || !*text) return {};
  const std::optional<Amount> amount = amount_of(text);
  const double bytes = amount ? amount->number * bytes_of_unit(amount->unit, total) : 0;
  if (!(bytes >= 1) || bytes >= double(largest_request))
    throw ValueError(
        "PLAIT_DEVICE_MEMORY is \"" + std::string(text) + "\", which is no amount of memory",
        "set it to \"12GB\", \"512MiB\", a number of bytes, or to a part of each "
        "device's memory, such as \"50%\"");
  return std::size_t(bytes);
}

KeptBlocks::Addresses& KeptBlocks::Lists::of(std::size_t block) {
  return block <= first_large ? small[small_class(block)] : large[block];
}

std::size_t KeptBlocks::Lists::largest() const {
  for (auto each = large.rbegin(); each != large.rend(); ++each)
    if (!each->second.empty()) return each->first;
  for (std::size_t number = small.size(); number > 0; --number)
    if (!small[number - 1].empty()) return bytes_of_class(number - 1);
  return 0;
}

DeviceMemory::DeviceMemory(DeviceState& state, std::size_t total)
    : state_(state),
      keeps_(keeps_blocks()),
      limit_(memory_limit(total).value_or(std::numeric_limits<std::size_t>::max())) {
  counted_.limit = std::min(limit_, total);
}

void DeviceMemory::add(KeptBlocks& blocks, CUstream stream) {
  const std::lock_guard lock(mutex_);
  blocks.stream_ = stream;
  streams_.push_back(&blocks);
}

CUdeviceptr DeviceMemory::take_kept(KeptBlocks& blocks, std::size_t block) {
  if (!keeps_ || state_.is_lost) return 0;
  KeptBlocks::Addresses& addresses = blocks.lists_.of(block);
  if (addresses.empty()) return 0;
  std::pop_heap(addresses.begin(), addresses.end(), std::greater());
  const CUdeviceptr data = addresses.back();
  addresses.pop_back();
  blocks.lists_.bytes -= block;
  kept_ -= block;
  return data;
}

bool DeviceMemory::begin(std::size_t block) {
  const std::size_t held = counted_.in_use + kept_;
  if (held > limit_ || block > limit_ - held) return false;
  counted_.in_use += block;
  return true;
}

void DeviceMemory::note_taken(std::size_t block) {
  counted_.most_in_use = std::max(counted_.most_in_use, counted_.in_use);
  counted_.largest = std::max(counted_.largest, block);
  ++counted_.num_allocations;
}

void* DeviceMemory::allocate(KeptBlocks& blocks, std::size_t bytes) {
  if (bytes > largest_request) return nullptr;
  const std::size_t block = block_for(bytes);
  enum class Pressure : std::uint8_t { none, release, wait };
  for (const Pressure pressure : {Pressure::none, Pressure::release, Pressure::wait}) {
    if (pressure != Pressure::none) give_back_kept();
    if (pressure == Pressure::wait) wait_for_streams();
    if (pressure != Pressure::none) trim();
    {
      const std::lock_guard lock(mutex_);
      if (const CUdeviceptr data = take_kept(blocks, block)) {
        counted_.in_use += block;
        note_taken(block);
        return reinterpret_cast<void*>(std::uintptr_t(data));
      }
      if (!begin(block)) continue;
    }
    CUdeviceptr data = 0;
    try {
      data = take_from_pool(block, blocks.stream_);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      counted_.in_use -= block;
      throw;
    }
    const std::lock_guard lock(mutex_);
    if (data) {
      note_taken(block);
      return reinterpret_cast<void*>(std::uintptr_t(data));
    }
    counted_.in_use -= block;
  }
  return nullptr;
}

void DeviceMemory::deallocate(KeptBlocks& blocks, void* data, std::size_t bytes) noexcept {
  const std::size_t block = block_for(bytes);
  const auto address = CUdeviceptr(reinterpret_cast<std::uintptr_t>(data));
  {
    const std::lock_guard lock(mutex_);
    counted_.in_use -= block;
    if (keeps_) try {
        KeptBlocks::Addresses& addresses = blocks.lists_.of(block);
        addresses.push_back(address);
        std::push_heap(addresses.begin(), addresses.end(), std::greater());
        blocks.lists_.bytes += block;
        kept_ += block;
        return;
      } catch (const std::bad_alloc&) {  // of the host, for the address
      }
  }
  give_to_pool(address, blocks.stream_);
}

void DeviceMemory::release() {
  give_back_kept();
  wait_for_streams();
  trim();
}

void DeviceMemory::give_back_kept() {
  for (std::size_t i = 0;; ++i) {
    KeptBlocks::Lists lists;
    CUstream stream = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (i == streams_.size()) break;
      std::swap(lists, streams_[i]->lists_);
      stream = streams_[i]->stream_;
      kept_ -= lists.bytes;
    }
    const auto give = [&](const KeptBlocks::Addresses& addresses) {
      for (const CUdeviceptr data : addresses) give_to_pool(data, stream);
    };
    for (const KeptBlocks::Addresses& addresses : lists.small) give(addresses);
    for (const auto& [bytes, addresses] : lists.large) give(addresses);
  }
}

Driver::MemoryStatistics DeviceMemory::statistics() const {
  std::uint64_t reserved = 0;
  if (!state_.is_lost)
    state_.require(driver_api()->cuMemPoolGetAttribute(
                       state_.pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved),
                   "count memory");
  const std::lock_guard lock(mutex_);
  Driver::MemoryStatistics found = counted_;
  found.reserved = reserved;
  for (const KeptBlocks* blocks : streams_)
    found.largest_kept = std::max(found.largest_kept, blocks->lists_.largest());
  return found;
}

CUdeviceptr DeviceMemory::take_from_pool(std::size_t block, CUstream stream) {
  const CurrentContext current(state_.device);
  CUdeviceptr data = 0;
  const CUresult result = driver_api()->cuMemAllocFromPoolAsync(&data, block, state_.pool, stream);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return 0;
  state_.require(result, "allocate memory");
  return data;
}

void DeviceMemory::give_to_pool(CUdeviceptr data, CUstream stream) noexcept {
  try {
    const CurrentContext current(state_.device);
    state_.note(driver_api()->cuMemFreeAsync(data, stream), "free memory");
  } catch (...) {  // noted; what cannot be freed ends with the process
  }
}

void DeviceMemory::wait_for_streams() {
  std::vector<CUstream> streams;
  {
    const std::lock_guard lock(mutex_);
    for (const KeptBlocks* blocks : streams_) streams.push_back(blocks->stream_);
  }
  const CurrentContext current(state_.device);
  for (const CUstream stream : streams) {
    CUresult result = CUDA_SUCCESS;
    while ((result = driver_api()->cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY) {
      check_interrupts();
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    state_.require(result, "run what it was given");
  }
}

void DeviceMemory::trim() {
  const CurrentContext current(state_.device);
  state_.require(driver_api()->cuMemPoolTrimTo(state_.pool, 0), "give memory back");
}

}  // namespace plait::cuda
