// Eight lanes of a warp that work together: an octet. See NOTE: [reduction order], whose parts they
// are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

constexpr int lanes_of_octet = 8;

// The lanes of this thread's octet, in its warp.
inline unsigned octet() { return 0xffu << (threadIdx.x & 24u); }

// shuffle(word), of 4 or 8 bytes, for a number of any size.
template <class T, class Shuffle>
T by_words(T x, const Shuffle& shuffle) {
  if constexpr (sizeof(T) == 4) {
    return std::bit_cast<T>(shuffle(std::bit_cast<unsigned>(x)));
  } else if constexpr (sizeof(T) == 8) {
    return std::bit_cast<T>(shuffle(std::bit_cast<unsigned long long>(x)));
  } else if constexpr (sizeof(T) == 16) {
    struct Words {
      unsigned long long low, high;
    } words = std::bit_cast<Words>(x);
    words.low = shuffle(words.low);
    words.high = shuffle(words.high);
    return std::bit_cast<T>(words);
  } else if constexpr (sizeof(T) == 2) {
    return std::bit_cast<T>(std::uint16_t(shuffle(unsigned(std::bit_cast<std::uint16_t>(x)))));
  } else {
    return std::bit_cast<T>(std::uint8_t(shuffle(unsigned(std::bit_cast<std::uint8_t>(x)))));
  }
}

// The number of the lane so much further on, of the same octet.
template <class T>
T from_lane_after(T x, int distance) {
  return by_words(x, [distance](auto word) {
    return __shfl_down_sync(octet(), word, unsigned(distance), lanes_of_octet);
  });
}
template <class T>
T from_first_lane(T x) {
  return by_words(x, [](auto word) { return __shfl_sync(octet(), word, 0, lanes_of_octet); });
}

template <class T>
void swap(T& a, T& b) {
  const T held = a;
  a = b;
  b = held;
}
