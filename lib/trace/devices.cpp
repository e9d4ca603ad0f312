// See devices.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/error.h>
#include <plait/base/stack.h>
#include <plait/trace/concrete.h>
#include <plait/trace/devices.h>

namespace plait {
namespace {

thread_local Device current_device;

// The elements of a stack lie where the loop ran that made them, and its handle on the host.
Device home_of(const Aval& aval, const Buffer& buffer) {
  if (aval.stack == 0) return buffer.device();
  const Stack::Handle& stack = *buffer.view().as<Stack::Handle>();
  return stack ? stack->device() : Device{};
}

}  // namespace

DeviceScope::DeviceScope(Device device) : outer_(current_device) { current_device = device; }
DeviceScope::~DeviceScope() { current_device = outer_; }
Device DeviceScope::current() { return current_device; }
void DeviceScope::set(Device device) { current_device = device; }

Device device_of(const Array& array) {
  const std::optional<Buffer> known = array.known_buffer();
  return known ? home_of(array.aval(), *known) : DeviceScope::current();
}

Array moved_to(const Array& array, Device device) {
  const Buffer buffer = array.buffer();
  if (buffer.device() == device && !buffer.is_free()) return array;
  Buffer there = buffer.on(device);
  there.set_free(false);
  return make_concrete(array.aval(), std::move(there));
}

void block_until_ready(std::span<const Array> arrays) {
  for (const Array& array : arrays)
    if (const std::optional<Buffer> known = array.known_buffer();
        known && known->device() != Device{})
      known->wait();
}

// Not again where it is said: a result may be an operand, which other threads read.
void set_free(std::span<const Array> arrays) {
  for (const Array& array : arrays)
    if (Buffer& buffer = static_cast<ConcreteNode*>(array.node())->buffer; !buffer.is_free())
      buffer.set_free(true);
}

void throw_two_devices(std::string_view operation, const PlacedOperand& first,
                       const PlacedOperand& second) {
  const auto text = [](const PlacedOperand& operand) {
    return "argument " + std::to_string(operand.number) + ", " + operand.aval.to_string() +
           ", on " + operand.device.to_string();
  };
  // An array of a device is seldom meant to leave it.
  const Device stays = first.device.is_host() ? second.device : first.device;
  throw BackendError(std::string(operation) + ": its operands lie on two devices: " + text(first) +
                         ", and " + text(second),
                     "move one of them: device_put(x, \"" + stays.to_string() + "\")");
}

Device common_device(std::string_view operation, std::span<const Array> arrays) {
  const auto placed = [&](std::size_t i) {
    return PlacedOperand{i, arrays[i].aval(), device_of(arrays[i])};
  };
  std::optional<std::size_t> named;
  bool are_free = true;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const Buffer buffer = arrays[i].buffer();
    if (buffer.is_free()) continue;
    are_free = false;
    const Device home = home_of(arrays[i].aval(), buffer);
    // Numbers move, and so do stacks of zeros, which have no memory.
    if (home.is_host() && (arrays[i].ndim() == 0 || arrays[i].aval().stack > 0)) continue;
    if (!named)
      named = i;
    else if (device_of(arrays[*named]) != home)
      throw_two_devices(operation, placed(*named), placed(i));
  }
  if (named) return device_of(arrays[*named]);
  return are_free ? DeviceScope::current() : Device{};
}

}  // namespace plait
