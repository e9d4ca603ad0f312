// Devices and the drivers of their kinds. See device.h and driver.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/driver.h>
#include <plait/base/error.h>

#include <array>
#include <atomic>
#include <mutex>

namespace plait {
namespace {

// Drivers are never destroyed: memory on their devices may outlive main.
struct Drivers {
  std::mutex mutex;
  std::array<std::atomic<Driver*>, 16> by_kind{};  // the first is the CPU's place: null
  std::atomic<std::size_t> count{1};
};
Drivers& drivers() {
  static Drivers& drivers = *new Drivers;
  return drivers;
}

std::string_view name_of(Device::Kind kind) {
  const Driver* driver = driver_of(kind);
  return driver ? driver->name() : "cpu";
}

}  // namespace

Device::Kind register_driver(std::unique_ptr<Driver> driver) {
  Drivers& all = drivers();
  const std::lock_guard lock(all.mutex);
  const std::size_t kind = all.count;
  for (std::size_t other = 0; other < kind; ++other)
    if (name_of(Device::Kind(other)) == driver->name())
      throw InternalError("two kinds of devices are named " + std::string(driver->name()));
  if (kind == all.by_kind.size())
    throw InternalError("no more than " + std::to_string(kind - 1) +
                        " kinds of devices can be registered");
  all.by_kind[kind] = driver.release();
  ++all.count;
  return Device::Kind(kind);
}

Driver* driver_of(Device::Kind kind) {
  if (kind == Device::Kind::cpu) return nullptr;
  return drivers().by_kind[std::size_t(kind)].load(std::memory_order_acquire);
}

std::string Device::to_string() const {
  return std::string(name_of(kind)) + ":" + std::to_string(index);
}

std::vector<Device> devices() {
  std::vector<Device> all{Device{}};
  for (std::size_t kind = 1; kind < drivers().count; ++kind)
    for (int i = 0; i < driver_of(Device::Kind(kind))->num_devices(); ++i)
      all.push_back({Device::Kind(kind), std::uint8_t(i)});
  return all;
}

Device Device::named(std::string_view name) {
  std::string known;
  for (const Device device : devices()) {
    const std::string own = device.to_string();
    if (own == name || (device.index == 0 && name_of(device.kind) == name)) return device;
    known += (known.empty() ? "" : ", ") + own;
  }
  throw BackendError("there is no device " + std::string(name), "the devices are: " + known);
}

}  // namespace plait
