// What tells whether an array in a file is the one that was written: CRC-32C, by the processor's
// own instruction, of four streams of words, of which the i-th takes every fourth word from i on,
// and of these four sums. Reads as fast as memory gives.
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
  // Pieces of an array, in order, each but the last of a multiple of 32 bytes.
  void add(std::string_view piece);
  std::string to_string() const;  // "crc32c-4:…"

 private:
  static constexpr std::size_t streams = 4;
  std::uint64_t sums_[streams] = {~0u, ~0u, ~0u, ~0u};
};

// How many arrays of so many bytes together are worth a thread.
std::int64_t checksum_grain(std::size_t num_arrays, std::size_t bytes);
std::vector<std::string> checksums_of(std::span<const std::string_view> arrays);

}  // namespace plait
