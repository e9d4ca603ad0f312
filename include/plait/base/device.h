// Where memory lives and work runs. The kernels of this version run on the CPU. A GPU is another
// kind with its own backend folder; every Buffer and executable already records its device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace plait {

struct Device {
  enum class Kind : std::uint8_t { cpu, cuda };
  Kind kind = Kind::cpu;
  std::uint8_t index = 0;
  bool operator==(const Device&) const = default;
  std::string to_string() const {
    return (kind == Kind::cpu ? "cpu:" : "cuda:") + std::to_string(index);
  }
};

// An ordered queue of work on a device; null on the CPU, where work is done when a call returns.
struct Stream {
  Device device;
  void* handle = nullptr;
};

}  // namespace plait
