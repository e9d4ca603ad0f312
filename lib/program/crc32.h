// The checksum of zip archives: CRC-32, by the processor's carry-less products, which keeps up with
// what memory gives.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace plait {

// Of bytes that follow those of which `before` is the checksum; 0 is that of none.
std::uint32_t crc32(std::uint32_t before, std::string_view bytes);

}  // namespace plait
