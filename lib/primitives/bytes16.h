// An element of 16 bytes, complex128, moved as it is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace plait {

struct alignas(8) Bytes16 {
  std::uint64_t low, high;
};

}  // namespace plait
