// What tells whether an array in a file is the one that was written: CRC-32C, by the processor's
// own instruction, of four streams of words, of which the i-th takes every fourth word from i on,
// and of these four sums. Reads as fast as memory gives.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

std::vector<std::string> checksums_of(std::span<const std::string_view> arrays);  // "crc32c-4:…"

}  // namespace plait
