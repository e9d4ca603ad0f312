// See checksum.h.
// SPDX-License-Identifier: Apache-2.0
#include "checksum.h"

#include <nmmintrin.h>
#include <plait/base/pool.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>

namespace plait {

namespace {

std::uint32_t sum_of(std::string_view bytes) {
  constexpr std::size_t streams = 4, word = 8;
  std::uint64_t sums[streams], words[streams];
  std::fill(std::begin(sums), std::end(sums), 0xffffffffu);
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= sizeof words; left -= sizeof words, at += sizeof words) {
    std::memcpy(words, at, sizeof words);
    for (std::size_t i = 0; i < streams; ++i) sums[i] = _mm_crc32_u64(sums[i], words[i]);
  }
  for (; left >= word; left -= word, at += word) {
    std::memcpy(words, at, word);
    sums[0] = _mm_crc32_u64(sums[0], words[0]);
  }
  auto sum = std::uint32_t(sums[0]);
  for (; left > 0; --left, ++at) sum = _mm_crc32_u8(sum, std::uint8_t(*at));
  for (std::size_t i = 1; i < streams; ++i) sum = _mm_crc32_u32(sum, std::uint32_t(sums[i]));
  return ~sum;
}

}  // namespace

std::vector<std::string> checksums_of(std::span<const std::string_view> arrays) {
  std::vector<std::uint32_t> sums(arrays.size());
  std::size_t bytes = 1;
  for (std::string_view array : arrays) bytes += array.size();
  constexpr std::size_t worth = 1 << 20;  // to wake a thread for
  const auto grain = std::int64_t(1 + worth * arrays.size() / bytes);
  parallel_for(std::int64_t(arrays.size()), grain, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = std::size_t(begin); i < std::size_t(end); ++i) sums[i] = sum_of(arrays[i]);
  });
  std::vector<std::string> texts;
  for (std::uint32_t sum : sums) {
    char text[20];
    std::snprintf(text, sizeof text, "crc32c-4:%08x", sum);
    texts.emplace_back(text);
  }
  return texts;
}

}  // namespace plait
