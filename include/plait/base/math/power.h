// pow, cbrt, rem.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/math/exp.h>
#include <plait/base/math/log.h>

namespace plait::math {

struct PowerConstants {
  // log2((1 + s) / (1 - s)) / s in s^2, relative error 3e-14: enough for float results.
  static constexpr std::array log2_short{2.885390081777849,   0.9617966941150197,
                                         0.5770779418675425,  0.4122093038239552,
                                         0.31990353724626625, 0.2829317167270421};
  // (2^r - 1) / r, relative error 5e-11.
  static constexpr std::array exp2_short{
      0.6931471807045196,    0.2402265106647275,     0.055504103656355754,  0.009618038141498477,
      0.0013333935364031981, 0.00015466753550318996, 1.5196089020613731e-05};
  // (log((1 + s) / (1 - s)) - 2s - 2/3 s^3) / s^5 in s^2, relative error 2^-73 of the logarithm.
  static constexpr std::array log_tail{
      0.3999999999999998,  0.2857142857144387,  0.2222222221777861,  0.1818181884573507,
      0.15384558290671266, 0.13336270367751718, 0.11675652443316578, 0.11982883905627786};
  static constexpr double two_thirds = 0.6666666666666666, two_thirds_low = 3.700743415417188e-17;
  // k * ln2_short is exact for |k| < 2^11.
  static constexpr double ln2_short = 0.6931471805592082, ln2_rest = 7.371002565167799e-13;
};

// a^y for a >= 0 in double, to float's accuracy: 2^(y log2(a)).
template <RealLanes V>
[[gnu::always_inline]] inline V pow_short(V a, V y) {
  using C = PowerConstants;
  using F = Format<double>;
  auto [k, f] = reduce_log(a);  // a float is never denormal in double
  V s = f / (f + V(2));
  V logarithm = fma(s, polynomial(s * s, C::log2_short), k);
  logarithm = select(a < V(F::infinity), logarithm, a);
  logarithm = select(a == V(0), V(-F::infinity), logarithm);
  V p = clamp(y * logarithm, -200, 200);
  V shifted = p + V(F::magic);
  V r = p - (shifted - V(F::magic));
  return fma(r, polynomial(r, C::exp2_short), V(1)) *
         power_of_two<V>(to_bits(shifted) - BitLanesOf<V>(F::magic_bits));
}

// A number as the unevaluated sum of two.
template <RealLanes V>
struct Sum {
  V high, low;
};

// log(a) to about 2^-67, for 0 < a < infinity, in double-double: 2s + 2/3 s^3 + s^5 P(s^2), only
// the last term in single precision.
template <RealLanes V>
[[gnu::always_inline]] inline Sum<V> log_long(V a) {
  using C = PowerConstants;
  auto [k, f] = reduce_log_any(a);
  V d = f + V(2), d_low = f - (d - V(2));
  V inverse = V(1) / d;
  V s = f * inverse;
  V s_low = fma(-s, d_low, fma(-s, d, f)) * inverse;
  V z = s * s, z_low = fma(s + s, s_low, fma(s, s, -z));
  V cube = s * z, cube_low = fma(s_low, z, fma(s, z_low, fma(s, z, -cube)));
  V third = product(cube, V(C::two_thirds));
  V third_low = fma(cube_low, V(C::two_thirds),
                    fma(cube, V(C::two_thirds_low), fma(cube, V(C::two_thirds), -third)));
  V first = V(2) * s;
  V sum = first + third;
  V low = (first - sum) + third;
  low = low + fma(V(2), s_low, fma(cube * z, polynomial(z, C::log_tail), third_low));
  V whole = k * V(C::ln2_short);
  V high = whole + sum;
  low = fma(k, V(C::ln2_rest), ((whole - high) + sum) + low);
  V result = high + low;
  return {result, (high - result) + low};
}

// a^y for a >= 0 in double: e^(y log(a)), the product in double-double.
template <RealLanes V>
[[gnu::always_inline]] inline V pow_long(V a, V y) {
  using F = Format<double>;
  using C = ExpConstants<double>;
  auto [high, low] = log_long(a);
  high = select(a < V(F::infinity), high, a);
  high = select(a == V(0), V(-F::infinity), high);
  V p = y * high;
  V p_low = fma(y, low, fma(y, high, -p));
  p_low = select(abs(p) < V(800), p_low, V(0));  // NaN where p is infinite
  V n = fma(clamp(p, -800, 800), V(C::log2e), V(F::magic));
  auto k = to_bits(n) - BitLanesOf<V>(F::magic_bits);
  n = n - V(F::magic);
  p = clamp(p, -800, 800);
  V r_high = fma(n, V(-C::ln2_high), p);
  V r_low = fma(n, V(-C::ln2_low), p_low);
  V r = r_high + r_low;
  r_low = (r_high - r) + r_low;
  return scale(V(1) + (r + fma(r * r, polynomial(r, C::exp), r_low)), k);
}

// C99's special cases, given the power of |x|.
template <RealLanes V>
[[gnu::always_inline]] inline V pow_signed(V x, V y, V magnitude) {
  using T = ElementOf<V>;
  using F = Format<T>;
  V half = y * V(T(0.5));
  auto is_integer = trunc(y) == y;
  auto is_odd = is_integer & (trunc(half) != half);
  V power = select((sign_of(x) != BitLanesOf<V>(0)) & is_odd, -magnitude, magnitude);
  power = select((x < V(0)) & (x > V(-F::infinity)) & !is_integer, V(F::nan), power);
  power = select(is_nan(y), y, power);
  auto is_one = (y == V(0)) | (x == V(1)) | ((x == V(-1)) & (abs(y) == V(F::infinity)));
  return select(is_one, V(1), power);
}

template <RealLanes V>
V pow(V x, V y) {
  V a = abs(x);
  if constexpr (is_float<ElementOf<V>>)
    return pow_signed(x, y, in_double([](auto b, auto z) { return pow_short(b, z); }, a, y));
  else
    return pow_signed(x, y, pow_long(a, y));
}

// From an estimate of x^(-1/3) by integer division of the exponent, two quartic steps without
// division, then one corrected step of Newton's method on y^3 = x.
template <RealLanes V>
V cbrt(V x) {
  if constexpr (is_float<ElementOf<V>>) {
    return in_double([](auto lanes) { return cbrt(lanes); }, x);
  } else {
    auto is_tiny = abs(x) < V(0x1p-500);  // scaled so that the residual is not denormal
    V a = select(is_tiny, abs(x) * V(0x1p300), abs(x));
    V high_word = from_bits(shift_right(to_bits(a), 32) | to_bits(V(0x1p52))) - V(0x1p52);
    V estimate = fma(high_word, V(-1.0 / 3), V(0x1p52 + 1430186334));
    V z = from_bits(shift_left(to_bits(estimate), 32));
    for (int step = 0; step < 2; ++step) {
      V h = fma(-((a * z) * z), z, V(1));
      z = fma(z * h, fma(h, fma(h, V(14.0 / 81), V(2.0 / 9)), V(1.0 / 3)), z);
    }
    V y = (a * z) * z;
    V square = y * y, square_low = fma(y, y, -square);
    V cube = product(square, y), cube_low = fma(square_low, y, fma(square, y, -cube));
    V residual = (a - cube) - cube_low;
    y = fma(residual * V(1.0 / 3), z * z, y);
    y = select(is_tiny, y * V(0x1p-100), y);
    y = select((a > V(0)) & (a < V(Format<double>::infinity)), y, a);
    return copysign(y, x);
  }
}

// The sign of x, the magnitude |x| - n |y| with n the quotient rounded towards zero: C's fmod,
// exact. While n fits the mantissa, one fused step gives it; it may be one too large.
template <RealLanes V>
V rem(V x, V y) {
  using T = ElementOf<V>;
  V a = abs(x), b = abs(y);
  V n = trunc(a / b);
  auto is_simple =
      (n < V(T(BitsOf<T>(1) << Format<T>::mantissa_bits))) & (b < V(Format<T>::infinity));
  if (!all(is_simple)) [[unlikely]]
    return each_lane([](T p, T q) { return std::fmod(p, q); }, x, y);
  V r = fma(-n, b, a);
  return copysign(select(r < V(0), r + b, r), x);
}

}  // namespace plait::math
