// See checksum.h.
// SPDX-License-Identifier: Apache-2.0
#include "checksum.h"

#include <nmmintrin.h>
#include <plait/base/pool.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace plait {

void Checksum::add(std::string_view piece) {
  constexpr std::size_t word = 8;
  std::uint64_t words[streams], sums[streams];  // in registers, thanks to an unrolled loop
  std::copy(sums_, sums_ + streams, sums);
  const char* at = piece.data();
  std::size_t left = piece.size();
  for (; left >= sizeof words; left -= sizeof words, at += sizeof words) {
    std::memcpy(words, at, sizeof words);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < streams; ++i) sums[i] = _mm_crc32_u64(sums[i], words[i]);
  }
  for (; left >= word; left -= word, at += word) {
    std::memcpy(words, at, word);
    sums[0] = _mm_crc32_u64(sums[0], words[0]);
  }
  for (; left > 0; --left, ++at) sums[0] = _mm_crc32_u8(std::uint32_t(sums[0]), std::uint8_t(*at));
  std::copy(sums, sums + streams, sums_);
}

std::string Checksum::to_string() const {
  auto sum = std::uint32_t(sums_[0]);
  for (std::size_t i = 1; i < streams; ++i) sum = _mm_crc32_u32(sum, std::uint32_t(sums_[i]));
  char text[20];
  std::snprintf(text, sizeof text, "crc32c-4:%08x", ~sum);
  return text;
}

std::int64_t checksum_grain(std::size_t num_arrays, std::size_t bytes) {
  constexpr std::size_t worth = 1 << 20;  // bytes that justify waking a thread
  return std::int64_t(1 + worth * num_arrays / (bytes + 1));
}

std::vector<std::string> checksums_of(std::span<const std::string_view> arrays) {
  std::vector<std::string> texts(arrays.size());
  std::size_t bytes = 0;
  for (std::string_view array : arrays) bytes += array.size();
  const std::int64_t grain = checksum_grain(arrays.size(), bytes);
  parallel_for(std::int64_t(arrays.size()), grain, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = std::size_t(begin); i < std::size_t(end); ++i) {
      Checksum sum;
      sum.add(arrays[i]);
      texts[i] = sum.to_string();
    }
  });
  return texts;
}

}  // namespace plait
