// log, log2, log10, log1p, asinh, acosh, atanh.
//
// x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), and log(1 + f) = f - tail(f). The tail is
// f^2 P(f) in float (minimax, degree 9), and fdlibm's f^2/2 - s (f^2/2 + R(s^2)), s = f / (2 + f),
// in double (minimax, degree 7): the leading term f stays exact.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/math/blocks.h>

namespace plait::math {

template <class T>
struct LogConstants;

template <>
struct LogConstants<float> {
  static constexpr float ln2_high = 0.6931472f, ln2_low = -1.9046542e-09f;
  static constexpr float log2e_high = 1.442695f, log2e_low = 1.925963e-08f;
  static constexpr float log10e_high = 0.4342945f, log10e_low = -1.010305e-08f;
  static constexpr float log10_2_high = 0.30103f, log10_2_low = -1.4320989e-08f;
  static constexpr float sqrt_half = 0.70710677f;
  // (f - log(1 + f)) / f^2.
  static constexpr std::array tail{5.0e-01f,       -3.3333308e-01f, 2.4999976e-01f, -2.0002395e-01f,
                                   1.6669911e-01f, -1.4216512e-01f, 1.2374118e-01f, -1.1876791e-01f,
                                   1.1835316e-01f, -6.950552e-02f};
};

template <>
struct LogConstants<double> {
  static constexpr double ln2_high = 0.6931471805599453, ln2_low = 2.3190468138462996e-17;
  static constexpr double log2e_high = 1.4426950408889634, log2e_low = 2.0355273740931033e-17;
  static constexpr double log10e_high = 0.4342944819032518, log10e_low = 1.098319650216765e-17;
  static constexpr double log10_2_high = 0.3010299956639812, log10_2_low = -2.8037281277851704e-18;
  static constexpr double sqrt_half = 0.7071067811865476;
  // (log((1 + s) / (1 - s)) / s - 2) / s^2 in s^2.
  static constexpr std::array tail{0.6666666666666666,  0.40000000000004937, 0.2857142856940426,
                                   0.22222222608259082, 0.1818177823756845,  0.15386994471463544,
                                   0.13252013308181906, 0.13236060154548673};
};

// x = 2^k (1 + f), for positive normal x.
template <RealLanes V>
struct LogReduced {
  V k, f;
};
template <RealLanes V>
[[gnu::always_inline]] inline LogReduced<V> reduce_log(V x) {
  using T = ElementOf<V>;
  using F = Format<T>;
  using I = BitLanesOf<V>;
  constexpr auto one = std::bit_cast<BitsOf<T>>(T(1));
  constexpr auto sqrt_half = std::bit_cast<BitsOf<T>>(LogConstants<T>::sqrt_half);
  I bits = to_bits(x) + I(one - sqrt_half);
  V k = to_real<V>(shift_right(bits, F::mantissa_bits) - I(F::bias));
  V m = from_bits((bits & I(F::mantissa_mask)) + I(sqrt_half));
  return {k, m - V(1)};
}

// The same for denormals too.
template <RealLanes V>
[[gnu::always_inline]] inline LogReduced<V> reduce_log_any(V x) {
  using T = ElementOf<V>;
  constexpr int shift = std::numeric_limits<T>::digits + 1;
  auto is_denormal = x < V(Format<T>::min_normal);
  auto reduced = reduce_log(select(is_denormal, x * V(T(std::int64_t(1) << shift)), x));
  reduced.k = reduced.k - select(is_denormal, V(shift), V(0));
  return reduced;
}

// f - log(1 + f).
template <RealLanes V>
[[gnu::always_inline]] inline V log_tail(V f) {
  using T = ElementOf<V>;
  if constexpr (is_float<T>) {
    return (f * f) * polynomial(f, LogConstants<T>::tail);
  } else {
    V s = f / (f + V(2));
    V z = s * s;
    V half_square = (V(T(0.5)) * f) * f;
    V r = fma(z, polynomial(z, LogConstants<T>::tail), half_square);
    return fma(-s, r, half_square);
  }
}

// y where x is positive and finite, else the value that every logarithm has there.
template <RealLanes V>
[[gnu::always_inline]] inline V log_special_cases(V x, V y) {
  using F = Format<ElementOf<V>>;
  y = select(x < V(F::infinity), y, x);  // infinity and NaN
  return select(x <= V(0), select(x == V(0), V(-F::infinity), V(F::nan)), y);
}

template <RealLanes V>
[[gnu::always_inline]] inline V log(V x) {
  using C = LogConstants<ElementOf<V>>;
  auto [k, f] = reduce_log_any(x);
  V low = fma(k, V(C::ln2_low), -log_tail(f));
  return log_special_cases(x, fma(k, V(C::ln2_high), f + low));
}

// k + log2(e) log(1 + f), log2(e) in two parts.
template <RealLanes V>
[[gnu::always_inline]] inline V log2(V x) {
  using C = LogConstants<ElementOf<V>>;
  auto [k, f] = reduce_log_any(x);
  V low = fma(f, V(C::log2e_low), -(log_tail(f) * V(C::log2e_high)));
  return log_special_cases(x, fma(f, V(C::log2e_high), low) + k);
}

// k log10(2) + log10(e) log(1 + f), both constants in two parts.
template <RealLanes V>
V log10(V x) {
  using C = LogConstants<ElementOf<V>>;
  auto [k, f] = reduce_log_any(x);
  V low = fma(f, V(C::log10e_low), -(log_tail(f) * V(C::log10e_high)));
  low = fma(k, V(C::log10_2_low), low);
  return log_special_cases(x, fma(k, V(C::log10_2_high), fma(f, V(C::log10e_high), low)));
}

// log(u) plus what rounding u = 1 + x lost, divided by u. Where k = 0, f is x itself.
template <RealLanes V>
[[gnu::always_inline]] inline V log1p(V x) {
  using T = ElementOf<V>;
  using C = LogConstants<T>;
  V u = x + V(1);
  auto [k, f] = reduce_log(u);
  V lost = lesser(x, V(1)) - (u - greater(x, V(1)));
  auto is_near_one = k == V(0);
  // 2^(1 - k), as 2^-k may be denormal; 1 / (1 + f) is about 1 - f + f^2.
  V inverse = from_bits(shift_left(
      to_bits(V(Format<T>::magic + 1) - k) - BitLanesOf<V>(Format<T>::magic_bits - Format<T>::bias),
      Format<T>::mantissa_bits));
  V correction = select(is_near_one, V(0), (V(T(0.5)) * lost) * inverse);
  f = select(is_near_one, x, f);
  V low = fma(correction, fma(f, f - V(1), V(1)), -log_tail(f));
  low = fma(k, V(C::ln2_low), low);
  V y = log_special_cases(u, fma(k, V(C::ln2_high), f + low));
  return select(x == V(0), x, y);  // keeps -0
}

// log1p(a + a^2 / (1 + sqrt(1 + a^2))); for large a, where that would overflow, log1p(a) + ln 2.
template <RealLanes V>
V asinh(V x) {
  if constexpr (is_float<ElementOf<V>>) {
    return in_double([](auto lanes) { return asinh(lanes); }, x);
  } else {
    V a = abs(x);
    auto is_large = a > V(0x1p54);
    V argument = a + (a * a) / (sqrt(fma(a, a, V(1))) + V(1));
    V y = log1p(select(is_large, a, argument));
    return copysign(y + select(is_large, V(LogConstants<double>::ln2_high), V(0)), x);
  }
}

// log1p(t + sqrt(2t + t^2)), t = x - 1; for large x as asinh.
template <RealLanes V>
V acosh(V x) {
  if constexpr (is_float<ElementOf<V>>) {
    return in_double([](auto lanes) { return acosh(lanes); }, x);
  } else {
    auto is_large = x > V(0x1p54);
    V t = x - V(1);
    V argument = t + sqrt(fma(t, t, t + t));
    V y = log1p(select(is_large, x, argument));
    y = y + select(is_large, V(LogConstants<double>::ln2_high), V(0));
    return select(x < V(1), V(Format<double>::nan), y);
  }
}

// log1p(2a / (1 - a)) / 2.
template <RealLanes V>
V atanh(V x) {
  if constexpr (is_float<ElementOf<V>>) {
    return in_double([](auto lanes) { return atanh(lanes); }, x);
  } else {
    V a = abs(x);
    return copysign(V(0.5) * log1p((a + a) / (V(1) - a)), x);
  }
}

}  // namespace plait::math
