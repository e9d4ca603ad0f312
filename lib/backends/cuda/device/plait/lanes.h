// Eight lanes of a warp that work together: an octet. See NOTE: [reduction order], whose parts they
// are. Lanes of a whole warp, and threads of a block, that go through neighbours together.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/kernel.h>

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
T from_first_of_warp(T x) {
  return by_words(x, [](auto word) { return __shfl_sync(0xffffffffu, word, 0); });
}

// So many threads go through neighbours in turns, four elements each: four neighbours, or four at a
// distance, in each of which threads side by side have elements side by side.
template <int threads, bool in_fours>
struct Lanes {
  // The k-th element of this thread in a turn, and whether it is one of `size`. Where it is one of
  // four neighbours, the size is a multiple of four. A turn of 32 bits has indices of 32 bits.
  template <class Turn>
  static long index(Turn turn, int k) {
    const int rank = int(threadIdx.x % unsigned(threads));
    return turn * (4 * threads) + (in_fours ? 4 * rank + k : k * threads + rank);
  }
  template <class Turn>
  static bool has(Turn turn, int k, long size) {
    return index(turn, k) < size;
  }

  template <class Memory, class Turn>
  static auto load(Memory memory, long at, Turn turn, long size) {
    decltype(load4(memory, 0)) four{};
    if constexpr (in_fours) {
      if (has(turn, 0, size)) four = load4(memory, at + index(turn, 0));
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (has(turn, k, size)) four.at[k] = memory[at + index(turn, k)];
    }
    return four;
  }
  template <class Memory, class Turn, class T>
  static void store(Memory memory, long at, Turn turn, long size, const Four<T>& four) {
    if constexpr (in_fours) {
      if (has(turn, 0, size)) store4(memory, at + index(turn, 0), four);
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (has(turn, k, size)) memory[at + index(turn, k)] = four.at[k];
    }
  }

  // The 128 parts that the lanes of a warp have as their elements, joined: neighbours first.
  template <class T, class Both>
  static T joined(T (&parts)[4], const Both& both) {
    static_assert(threads == 32);
    const auto of_lanes = [&](T part) {
#pragma unroll
      for (unsigned distance = 1; distance < 32; distance *= 2)
        part = both(part, by_words(part, [=](auto word) {
                      return __shfl_down_sync(0xffffffffu, word, distance);
                    }));
      return part;
    };
    if constexpr (in_fours) {
      return from_first_of_warp(of_lanes(both(both(parts[0], parts[1]), both(parts[2], parts[3]))));
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k) parts[k] = of_lanes(parts[k]);
      return from_first_of_warp(both(both(parts[0], parts[1]), both(parts[2], parts[3])));
    }
  }
};
struct InFours {
  static constexpr bool value = true;
};
struct OneByOne {
  static constexpr bool value = false;
};

template <class T>
void swap(T& a, T& b) {
  const T held = a;
  a = b;
  b = held;
}
