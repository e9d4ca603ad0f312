// See staging.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/staging.h"

#include <plait/base/driver.h>
#include <plait/base/error.h>

#include <array>
#include <bit>
#include <map>
#include <mutex>
#include <vector>

namespace plait {
namespace {

constexpr std::size_t least = 64, largest_kept = 1 << 16;
constexpr std::size_t most_kept = 256;  // blocks of a size

// Blocks of a device that nobody uses, by the logarithm of their size. Never destroyed.
struct Kept {
  std::mutex mutex;
  std::map<std::pair<Device::Kind, int>, std::array<std::vector<void*>, 17>> blocks;
};
Kept& kept() {
  static Kept& kept = *new Kept;
  return kept;
}
std::vector<void*>& blocks_of(Device device, std::size_t bytes) {
  return kept().blocks[{device.kind, device.index}][std::size_t(std::countr_zero(bytes))];
}

void* take_kept(Device device, std::size_t bytes) {
  const std::lock_guard lock(kept().mutex);
  std::vector<void*>& blocks = blocks_of(device, bytes);
  if (blocks.empty()) return nullptr;
  void* data = blocks.back();
  blocks.pop_back();
  return data;
}

}  // namespace

Staging::Staging(Device device, std::size_t bytes)
    : device_(device),
      bytes_(bytes > largest_kept ? bytes : std::bit_ceil(std::max(bytes, least))),
      data_(bytes_ > largest_kept ? nullptr : take_kept(device, bytes_)) {
  if (!data_) data_ = driver_of(device.kind)->allocate_staging(device, bytes_);
  if (!data_)
    throw MemoryError("cannot allocate " + std::to_string(bytes) + " bytes of host memory that " +
                          device.to_string() + " can copy",
                      "drop arrays that are no longer needed");
}

Staging::~Staging() {
  if (bytes_ <= largest_kept) {
    const std::lock_guard lock(kept().mutex);
    std::vector<void*>& blocks = blocks_of(device_, bytes_);
    if (blocks.size() < most_kept) {
      blocks.push_back(data_);
      return;
    }
  }
  driver_of(device_.kind)->deallocate_staging(device_, data_, bytes_);
}

}  // namespace plait
