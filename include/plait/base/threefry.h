// Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// 2011): the counter-based generator behind the random primitives.
//
// Bit-exact with JAX's partitionable threefry: the bits of element i of an array depend on the key
// and on i alone, so any part of an array can be filled by any thread, in any order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>

namespace plait {

using ThreefryKey = std::array<std::uint32_t, 2>;

// The high and the low word of x, the form in which seeds and element indices enter the generator.
constexpr std::array<std::uint32_t, 2> threefry_words(std::uint64_t x) {
  return {static_cast<std::uint32_t>(x >> 32), static_cast<std::uint32_t>(x)};
}

constexpr std::array<std::uint32_t, 2> threefry2x32(ThreefryKey key,
                                                    std::array<std::uint32_t, 2> counter) {
  constexpr int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const std::uint32_t schedule[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDAu};
  std::uint32_t x = counter[0] + schedule[0];
  std::uint32_t y = counter[1] + schedule[1];
  for (std::uint32_t group = 0; group < 5; ++group) {
    for (int rotation : rotations[group % 2]) {
      x += y;
      y = std::rotl(y, rotation) ^ x;
    }
    x += schedule[(group + 1) % 3];
    y += schedule[(group + 2) % 3] + group + 1;
  }
  return {x, y};
}

// jax.random.key(seed), the seed as 64 bits.
constexpr ThreefryKey threefry_key(std::uint64_t seed) { return threefry_words(seed); }

// jax.random.fold_in(key, data); JAX's data has 32 bits.
constexpr ThreefryKey threefry_fold_in(ThreefryKey key, std::uint64_t data) {
  return threefry2x32(key, threefry_words(data));
}

// jax.random.split(key, num)[child], whatever num is.
constexpr ThreefryKey threefry_split(ThreefryKey key, std::uint64_t child) {
  return threefry2x32(key, threefry_words(child));
}

// Fills dst with jax.random.bits(key, shape, dtype).ravel()[first : first + dst.size()].
void threefry_bits(ThreefryKey key, std::uint64_t first, std::span<std::uint8_t> dst);
void threefry_bits(ThreefryKey key, std::uint64_t first, std::span<std::uint16_t> dst);
void threefry_bits(ThreefryKey key, std::uint64_t first, std::span<std::uint32_t> dst);
void threefry_bits(ThreefryKey key, std::uint64_t first, std::span<std::uint64_t> dst);

// Both words of threefry2x32 of as many keys and counters, the first one in the high half.
void threefry_each(const std::uint32_t* k0, const std::uint32_t* k1, const std::uint32_t* high,
                   const std::uint32_t* low, std::span<std::uint64_t> dst);

}  // namespace plait
