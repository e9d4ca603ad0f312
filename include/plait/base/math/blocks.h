// What the families of math are built from: polynomials, exact scaling by powers of two, and the
// conversion of small integers.
//
// No product is an operand of + or - anywhere in math, unless it is exact: a compiler that
// contracts such pairs to fma (g++ does by default) then gives the same bits as one that does not.
// The cores are always inlined, so that a loop over packs keeps its constants in registers; g++
// would not inline them at -O2 by itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <limits>

#include <plait/base/pack.h>

namespace plait::math {

// The layout of a floating-point element, and constants that depend on nothing else.
template <class T>
struct Format {
  using Bits = BitsOf<T>;
  static constexpr int mantissa_bits = std::numeric_limits<T>::digits - 1;
  static constexpr Bits bias = std::numeric_limits<T>::max_exponent - 1;
  static constexpr Bits mantissa_mask = (Bits(1) << mantissa_bits) - 1;
  static constexpr T infinity = std::numeric_limits<T>::infinity();
  static constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  static constexpr T min_normal = std::numeric_limits<T>::min();
  // 1.5 * 2^mantissa_bits: adding it rounds to an integer, which then sits in the low bits.
  static constexpr T magic = T(1.5) * T(Bits(1) << mantissa_bits);
  static constexpr Bits magic_bits = std::bit_cast<Bits>(magic);
};

template <class T>
inline constexpr bool is_float = std::is_same_v<T, float>;

// The rounded product, where a compiler that contracts x * y + z would give other bits.
template <RealLanes V>
[[gnu::always_inline]] inline V product(V x, V y) {
  return fma(x, y, V(0));
}

// c[first] + c[first + 1] x + ... of count terms, given powers[i] = x^(2^i).
template <std::size_t first, std::size_t count, class V, std::size_t n, std::size_t m>
[[gnu::always_inline]] inline V estrin(const std::array<V, m>& powers,
                                       const std::array<ElementOf<V>, n>& c) {
  if constexpr (count == 1) {
    return V(c[first]);
  } else {
    constexpr int level = std::bit_width(count - 1) - 1;
    constexpr std::size_t half = std::size_t{1} << level;
    return fma(estrin<first + half, count - half>(powers, c), powers[level],
               estrin<first, half>(powers, c));
  }
}

// c[0] + c[1] x + c[2] x^2 + ..., by Estrin's rule with fma: half of the multiply-adds have no
// dependency, whereas Horner's rule is one chain that an out-of-order processor cannot overlap with
// that of the next pack.
template <class V, std::size_t n>
[[gnu::always_inline]] inline V polynomial(V x, const std::array<ElementOf<V>, n>& c) {
  std::array<V, n == 1 ? 1 : std::bit_width(n - 1)> powers;
  powers[0] = x;
  for (std::size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * powers[i - 1];
  return estrin<0, n>(powers, c);
}

// The same by Horner's rule, which needs the fewest operations: for functions of several short
// polynomials, whose chains overlap each other.
template <class V, std::size_t n>
[[gnu::always_inline]] inline V horner(V x, const std::array<ElementOf<V>, n>& c) {
  V y(c[n - 1]);
  for (std::size_t i = n - 1; i-- > 0;) y = fma(y, x, V(c[i]));
  return y;
}

// An integer below 2^(mantissa_bits - 1) in magnitude (in two's complement) as a real.
template <RealLanes V>
[[gnu::always_inline]] inline V to_real(BitLanesOf<V> i) {
  using F = Format<ElementOf<V>>;
  using I = BitLanesOf<V>;
  V shifted = from_bits(i + I(F::magic_bits));
  return shifted - V(F::magic);
}

// 2^k for a normal result.
template <RealLanes V>
[[gnu::always_inline]] inline V power_of_two(BitLanesOf<V> k) {
  using F = Format<ElementOf<V>>;
  return from_bits(shift_left(k + BitLanesOf<V>(F::bias), F::mantissa_bits));
}

// x * 2^k, rounded once, for x of moderate size and |k| < 2 * bias. Two factors, because 2^k alone
// may overflow where the product does not, and may be denormal.
template <RealLanes V>
[[gnu::always_inline]] inline V scale(V x, BitLanesOf<V> k) {
  using I = BitLanesOf<V>;
  I half = shift_right(k + I(4096), 1) - I(2048);  // the offset makes a logical shift suffice
  return (x * power_of_two<V>(half)) * power_of_two<V>(k - half);
}

// f of float lanes evaluated in double: then rounding the result is nearly all the error.
template <class F, RealLanes V>
[[gnu::always_inline]] inline V in_double(F f, V x) {
  auto halves = widen(x);
  for (auto& half : halves) half = f(half);
  return narrow(halves);
}
template <class F, RealLanes V>
[[gnu::always_inline]] inline V in_double(F f, V x, V y) {
  auto halves = widen(x);
  const auto other = widen(y);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = f(halves[i], other[i]);
  return narrow(halves);
}

}  // namespace plait::math
