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

constexpr std::size_t least = 64, most_blocks = 256;           // of a size
constexpr std::size_t most_bytes = 8 * Staging::largest_kept;  // of a device

// What nobody uses of a device's blocks.
struct OfDevice {
  std::array<std::vector<void*>, std::countr_zero(Staging::largest_kept) + 1>
      blocks;  // by log size
  std::size_t bytes = 0;
};
// Never destroyed.
struct Kept {
  std::mutex mutex;
  std::map<std::pair<Device::Kind, int>, OfDevice> by_device;
};
Kept& kept() {
  static Kept& kept = *new Kept;
  return kept;
}
OfDevice& of_device(Device device) { return kept().by_device[{device.kind, device.index}]; }

void* take_kept(Device device, std::size_t bytes) {
  const std::lock_guard lock(kept().mutex);
  OfDevice& all = of_device(device);
  std::vector<void*>& blocks = all.blocks[std::size_t(std::countr_zero(bytes))];
  if (blocks.empty()) return nullptr;
  void* data = blocks.back();
  blocks.pop_back();
  all.bytes -= bytes;
  return data;
}

bool is_kept(Device device, std::size_t bytes, void* data) {
  const std::lock_guard lock(kept().mutex);
  OfDevice& all = of_device(device);
  std::vector<void*>& blocks = all.blocks[std::size_t(std::countr_zero(bytes))];
  if (blocks.size() == most_blocks || all.bytes + bytes > most_bytes) return false;
  blocks.push_back(data);
  all.bytes += bytes;
  return true;
}

// Gives back what nobody uses; whether there was anything.
bool give_back_kept(Device device) {
  OfDevice all;
  {
    const std::lock_guard lock(kept().mutex);
    std::swap(all, of_device(device));
  }
  for (std::size_t log = 0; log < all.blocks.size(); ++log)
    for (void* data : all.blocks[log])
      driver_of(device.kind)->deallocate_staging(device, data, std::size_t{1} << log);
  return all.bytes > 0;
}

}  // namespace

Staging::Staging(Device device, std::size_t bytes)
    : device_(device),
      bytes_(bytes > largest_kept ? bytes : std::bit_ceil(std::max(bytes, least))),
      data_(bytes_ > largest_kept ? nullptr : take_kept(device, bytes_)) {
  Driver& driver = *driver_of(device.kind);
  if (!data_) data_ = driver.allocate_staging(device, bytes_);
  if (!data_ && give_back_kept(device)) data_ = driver.allocate_staging(device, bytes_);
  if (!data_)
    throw MemoryError("cannot allocate " + std::to_string(bytes) + " bytes of host memory that " +
                          device.to_string() + " can copy",
                      "drop arrays that are no longer needed");
}

Staging::~Staging() {
  if (bytes_ <= largest_kept && is_kept(device_, bytes_, data_)) return;
  driver_of(device_.kind)->deallocate_staging(device_, data_, bytes_);
}

}  // namespace plait
