// Devices and the drivers of their kinds. See device.h and driver.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/driver.h>
#include <plait/base/error.h>

#include <array>
#include <atomic>
#include <mutex>
#include <optional>

#include "base/device_modules.h"
#include "base/placement.h"

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

std::atomic<const DeviceModules*> modules{nullptr};

std::string_view name_of(Device::Kind kind) {
  const Driver* driver = driver_of(kind);
  return driver ? driver->name() : "cpu";
}

std::vector<Device> registered_devices() {
  std::vector<Device> all{Device{}};
  for (std::size_t kind = 1; kind < drivers().count; ++kind)
    for (int i = 0; i < driver_of(Device::Kind(kind))->num_devices(); ++i)
      all.push_back({Device::Kind(kind), std::uint8_t(i)});
  return all;
}

std::optional<Device> registered_device(std::string_view name) {
  for (const Device device : registered_devices())
    if (device.to_string() == name || (device.index == 0 && name_of(device.kind) == name))
      return device;
  return {};
}

}  // namespace

void release_memory_of_devices() {
  for (const Device device : registered_devices())
    if (!device.is_host()) driver_of(device.kind)->release_memory(device);
}

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

void set_device_modules(const DeviceModules* known) { modules = known; }
void load_device_modules() {
  if (const DeviceModules* known = modules) known->load();
}

std::string Device::to_string() const {
  return std::string(name_of(kind)) + ":" + std::to_string(index);
}

std::vector<Device> devices() {
  load_device_modules();
  return registered_devices();
}

Device Device::named(std::string_view name) {
  // Modules are loaded where the name needs it: that takes a while.
  if (const std::optional<Device> device = registered_device(name)) return *device;
  load_device_modules();
  if (const std::optional<Device> device = registered_device(name)) return *device;
  std::string known, reason;
  for (const Device device : registered_devices())
    known += (known.empty() ? "" : ", ") + device.to_string();
  if (const DeviceModules* all = modules) reason = all->why_missing(name.substr(0, name.find(':')));
  throw BackendError(
      "there is no device " + std::string(name) + (reason.empty() ? "" : ": " + reason),
      "the devices are: " + known);
}

}  // namespace plait
