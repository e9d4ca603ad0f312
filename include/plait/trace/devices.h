// The devices of arrays, and that on which arrays are made.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/array.h>

#include <span>

namespace plait {

// Where a value lies; of a traced one, the current device.
Device device_of(const Array& array);

// While it lives, this thread makes arrays of numbers on the device: full, arange, random numbers.
class DeviceScope {
 public:
  explicit DeviceScope(Device device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  static Device current();         // the CPU, outside of scopes
  static void set(Device device);  // for languages whose scopes are no objects of C++

 private:
  const Device outer_;
};

// A known array on a device by name: itself, or a copy. See device_put in primitives.h.
Array moved_to(const Array& array, Device device);
// Waits until the arrays are computed, and throws what failed.
void block_until_ready(std::span<const Array> arrays);

// Where the operands of an operation lie, all together: one look at each, since every operation
// asks.
class Whereabouts {
 public:
  void add(const Buffer& buffer) {
    any_ |= buffer.where();
    all_ &= buffer.where();
  }
  bool are_on_host() const { return !(any_ & Buffer::apart_bit); }
  bool are_free() const { return all_ != 0; }  // made of numbers alone, all of them
  // Whether the operation runs on the host, wherever the current device is.
  bool are_plain() const { return are_on_host() && !are_free(); }

 private:
  std::uint8_t any_ = 0, all_ = Buffer::free_bit;
};
// Says that known arrays are made of numbers alone.
void set_free(std::span<const Array> arrays);

// The device of an operation on these arrays: that of those which lie on a device by name. Arrays
// of numbers alone, and numbers, go there. BackendError for two devices, with the operation's name.
Device common_device(std::string_view operation, std::span<const Array> arrays);
// That error, of two operands.
struct PlacedOperand {
  std::size_t number;
  Aval aval;
  Device device;
};
[[noreturn]] void throw_two_devices(std::string_view operation, const PlacedOperand& first,
                                    const PlacedOperand& second);

}  // namespace plait
