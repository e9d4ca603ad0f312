// The checksum of zip archives: CRC-32, by carry-less multiplication, at the speed of memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace plait {

// Continues the checksum `before` over further bytes; 0 is that of no bytes.
std::uint32_t crc32(std::uint32_t before, std::string_view bytes);

}  // namespace plait
