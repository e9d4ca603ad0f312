// The checksum of an array in a file: CRC-32C, by the processor's own instruction, of four streams
// of words, of which the i-th takes every fourth word from i on, and of these four checksums. It
// runs at the speed of memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

class Checksum {
 public:
  // Consecutive chunks of an array; all but the last are multiples of 32 bytes.
  void add(std::string_view piece);
  std::string to_string() const;  // "crc32c-4:…"

 private:
  static constexpr std::size_t streams = 4;
  std::uint64_t sums_[streams] = {~0u, ~0u, ~0u, ~0u};
};

// How many arrays of this total size justify a thread.
std::int64_t checksum_grain(std::size_t num_arrays, std::size_t bytes);
std::vector<std::string> checksums_of(std::span<const std::string_view> arrays);

}  // namespace plait
