// Bulk threefry: eight counters at a time in Pack lanes, the rest one by one.
// SPDX-License-Identifier: Apache-2.0
#include "plait/base/threefry.h"

#include <algorithm>
#include <cstddef>

#include "plait/base/pack.h"

namespace plait {
namespace {

using Words = Pack<std::uint32_t, 8>;

template <int count>
[[gnu::always_inline]] inline Words rotate_left(Words x) {
  return math::shift_left(x, count) | math::shift_right(x, 32 - count);
}

template <int r0, int r1, int r2, int r3>
[[gnu::always_inline]] inline void mix_four(Words& x, Words& y) {
  x = x + y, y = rotate_left<r0>(y) ^ x;
  x = x + y, y = rotate_left<r1>(y) ^ x;
  x = x + y, y = rotate_left<r2>(y) ^ x;
  x = x + y, y = rotate_left<r3>(y) ^ x;
}

// threefry2x32 of eight counters, in place, and a key that is one for all or has lanes too. Not
// inlined, g++ would pass both words through memory.
template <class Key>
[[gnu::always_inline]] inline void mix(Key k0, Key k1, Words& x, Words& y) {
  const Key k2 = k0 ^ k1 ^ Key(0x1BD11BDAu);
  x = x + k0, y = y + k1;
  mix_four<13, 15, 26, 6>(x, y);
  x = x + k1, y = y + (k2 + Key(1));
  mix_four<17, 29, 16, 24>(x, y);
  x = x + k2, y = y + (k0 + Key(2));
  mix_four<13, 15, 26, 6>(x, y);
  x = x + k0, y = y + (k1 + Key(3));
  mix_four<17, 29, 16, 24>(x, y);
  x = x + k1, y = y + (k2 + Key(4));
  mix_four<13, 15, 26, 6>(x, y);
  x = x + k2, y = y + (k0 + Key(5));
}

// Forms the bits of one element from the two output words.
template <class T>
T combine(std::uint32_t x, std::uint32_t y) {
  if constexpr (sizeof(T) == 8)
    return std::uint64_t{x} << 32 | y;
  else
    return static_cast<T>(x ^ y);
}

template <class T>
void fill(ThreefryKey key, std::uint64_t first, std::span<T> dst) {
  constexpr std::uint64_t width = 8;
  constexpr std::uint32_t lanes[width] = {0, 1, 2, 3, 4, 5, 6, 7};
  std::size_t i = 0;
  while (i < dst.size()) {
    // The high counter word is constant up to the next multiple of 2^32.
    const std::uint64_t index = first + i;
    const std::uint64_t until_carry = (std::uint64_t{1} << 32) - (index & 0xFFFFFFFFu);
    const std::size_t end = i + std::min<std::uint64_t>(dst.size() - i, until_carry);
    const auto [high, low] = threefry_words(index);
    std::uint32_t counter = low;
    for (; i + width <= end; i += width, counter += width) {
      Words x = high, y = Words::load(lanes) + counter;
      mix(key[0], key[1], x, y);
      if constexpr (sizeof(T) == 4) {
        (x ^ y).store(dst.data() + i);
      } else if constexpr (sizeof(T) == 8) {
        for (std::uint64_t j = 0; j < width; ++j) dst[i + j] = combine<T>(x[j], y[j]);
      } else {
        const Words bits = x ^ y;
        for (std::uint64_t j = 0; j < width; ++j) dst[i + j] = static_cast<T>(bits[j]);
      }
    }
    for (; i < end; ++i, ++counter) {
      const auto [x, y] = threefry2x32(key, {high, counter});
      dst[i] = combine<T>(x, y);
    }
  }
}

}  // namespace

void threefry_bits(ThreefryKey key, std::uint64_t first, std::span<std::uint8_t> dst) {
  fill(key, first, dst);
}
void threefry_bits(ThreefryKey key, std::uint64_t first, std::span<std::uint16_t> dst) {
  fill(key, first, dst);
}
void threefry_bits(ThreefryKey key, std::uint64_t first, std::span<std::uint32_t> dst) {
  fill(key, first, dst);
}
void threefry_bits(ThreefryKey key, std::uint64_t first, std::span<std::uint64_t> dst) {
  fill(key, first, dst);
}

void threefry_each(const std::uint32_t* k0, const std::uint32_t* k1, const std::uint32_t* high,
                   const std::uint32_t* low, std::span<std::uint64_t> dst) {
  constexpr std::size_t width = 8;
  std::size_t i = 0;
  for (; i + width <= dst.size(); i += width) {
    Words x = Words::load(high + i), y = Words::load(low + i);
    mix(Words::load(k0 + i), Words::load(k1 + i), x, y);
    for (std::size_t j = 0; j < width; ++j)
      dst[i + j] = combine<std::uint64_t>(x[int(j)], y[int(j)]);
  }
  for (; i < dst.size(); ++i) {
    const auto [x, y] = threefry2x32({k0[i], k1[i]}, {high[i], low[i]});
    dst[i] = combine<std::uint64_t>(x, y);
  }
}

}  // namespace plait
