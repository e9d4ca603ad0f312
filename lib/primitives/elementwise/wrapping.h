// Integers wrap: they are computed as unsigned ones, whose overflow is defined and gives the same
// bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <type_traits>

namespace plait {

template <class T>
constexpr auto wrapping(T x) {
  if constexpr (std::is_integral_v<T>)
    return std::make_unsigned_t<decltype(x + x)>(x);  // narrow types are promoted to int first
  else
    return x;
}

// A product that is rounded before it is added. GCC fuses products with sums and differences that
// take turns, as those of complex numbers do, even under -ffp-contract=off: in its vector loops
// only, so that a number would have other bits there than at their ends.
template <class T>
constexpr T rounded(T x) {
#if __has_builtin(__builtin_assoc_barrier)
  return __builtin_assoc_barrier(x);
#else
  return x;
#endif
}

// Of complex numbers without the cases that would make infinities of NaNs.
template <class T>
constexpr T product(T x, T y) {
  if constexpr (requires { x.imag(); })
    return T(rounded(x.real() * y.real()) - rounded(x.imag() * y.imag()),
             rounded(x.real() * y.imag()) + rounded(x.imag() * y.real()));
  else
    return T(wrapping(x) * wrapping(y));
}

// Of complex numbers by the larger part of the divisor, as NumPy does (Smith 1962).
template <class T>
T quotient(T x, T y) {
  if constexpr (requires { x.imag(); }) {
    const auto size_of_real = std::abs(y.real()), size_of_imag = std::abs(y.imag());
    const bool is_real = size_of_real >= size_of_imag;
    const auto large = is_real ? y.real() : y.imag(), small = is_real ? y.imag() : y.real(),
               p = is_real ? x.real() : x.imag(), q = is_real ? x.imag() : x.real();
    if (large == 0) return T(x.real() / size_of_real, x.imag() / size_of_real);
    const auto ratio = small / large, scale = 1 / (large + small * ratio);
    const auto across = q - p * ratio;
    return T((p + q * ratio) * scale, (is_real ? across : -across) * scale);
  } else {
    return x / y;
  }
}

// What a loop over T may be compiled for instead, where the sign makes no difference: it is
// compiled once for both.
template <class T>
struct UnsignedOf {
  using type = T;
};
template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
struct UnsignedOf<T> {
  using type = std::make_unsigned_t<T>;
};

}  // namespace plait
