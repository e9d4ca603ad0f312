// Where memory lives and work runs: the CPU, or a device whose driver is registered (driver.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

struct Device {
  // Further kinds are numbered in the order in which their drivers are registered.
  enum class Kind : std::uint8_t { cpu };
  Kind kind = Kind::cpu;
  std::uint8_t index = 0;

  bool operator==(const Device&) const = default;
  bool is_host() const { return kind == Kind::cpu; }
  std::string to_string() const;  // "cpu:0", "cuda:1"
  // "cuda:1", or "cuda" for "cuda:0". BackendError, naming the devices there are, for any other.
  static Device named(std::string_view name);
};

std::vector<Device> devices();  // the CPU first

}  // namespace plait
