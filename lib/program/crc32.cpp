// See crc32.h. Bytes are a polynomial over GF(2) whose leading term is the first bit of the first
// byte, and the checksum is its remainder modulo P. Long inputs are folded: with x^n mod P known,
// the bits n positions before are added to the current ones by two 64-bit products (V. Gopal et
// al., Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction, Intel, 2009). The
// last 16 bytes and the tail use a table.
// SPDX-License-Identifier: Apache-2.0
#include "crc32.h"

#include <immintrin.h>

#include <array>
#include <cstring>

namespace plait {
namespace {

constexpr std::uint32_t polynomial = 0xEDB88320;  // reflected: bits from low powers to high ones

constexpr std::uint32_t times_x(std::uint32_t value) {
  return value & 1 ? polynomial ^ (value >> 1) : value >> 1;
}

constexpr std::array<std::uint32_t, 256> table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    table[byte] = byte;
    for (int bit = 0; bit < 8; ++bit) table[byte] = times_x(table[byte]);
  }
  return table;
}();

std::uint32_t by_table(std::uint32_t sum, const char* at, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i)
    sum = table[(sum ^ std::uint8_t(at[i])) & 255] ^ (sum >> 8);
  return sum;
}

// x^n mod P, shifted up by one bit, because the product of reflected numbers is shifted down by
// one.
constexpr std::int64_t power(int n) {
  std::uint32_t value = std::uint32_t(1) << 31;
  for (int i = 0; i < n; ++i) value = times_x(value);
  return std::int64_t(std::uint64_t(value) << 1);
}

constexpr std::size_t lane = 16, lanes = 4;

// folded * x^n + next: each half of 64 bits by the power for its distance.
template <int n>
__attribute__((target("pclmul"))) inline __m128i fold(__m128i folded, __m128i next) {
  const __m128i powers = _mm_set_epi64x(power(n - 32), power(n + 32));
  const __m128i low = _mm_clmulepi64_si128(folded, powers, 0x00);
  const __m128i high = _mm_clmulepi64_si128(folded, powers, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// For at least 64 bytes.
__attribute__((target("pclmul"))) std::uint32_t by_folding(std::uint32_t sum, const char* at,
                                                           std::size_t size) {
  const auto load = [](const char* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  };
  __m128i folded[lanes];
  for (std::size_t i = 0; i < lanes; ++i) folded[i] = load(at + i * lane);
  folded[0] = _mm_xor_si128(folded[0], _mm_cvtsi32_si128(int(sum)));
  at += lanes * lane, size -= lanes * lane;
  for (; size >= lanes * lane; at += lanes * lane, size -= lanes * lane)
#pragma GCC unroll 4
    for (std::size_t i = 0; i < lanes; ++i)
      folded[i] = fold<lanes * lane * 8>(folded[i], load(at + i * lane));
  for (std::size_t i = 1; i < lanes; ++i) folded[i] = fold<lane * 8>(folded[i - 1], folded[i]);
  char rest[lane];
  std::memcpy(rest, &folded[lanes - 1], lane);
  return by_table(by_table(0, rest, lane), at, size);
}

}  // namespace

std::uint32_t crc32(std::uint32_t before, std::string_view bytes) {
  static const bool folds = __builtin_cpu_supports("pclmul");
  const auto sum_of = folds && bytes.size() >= lanes * lane ? by_folding : by_table;
  return ~sum_of(~before, bytes.data(), bytes.size());
}

}  // namespace plait
