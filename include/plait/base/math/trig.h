// sin, cos, tan.
//
// x = n pi/2 + r with |r| <= pi/4, by Cody and Waite's three-part pi/2 (the first step is exact
// under fma) up to a limit, and beyond it, lane by lane, by Payne and Hanek's method in integers.
// Minimax polynomials on [-pi/4, pi/4].
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/math/blocks.h>

namespace plait::math {

// x = n pi/2 + r + r_low, |r| <= pi/4, for every finite x above 1 in magnitude; only n modulo 4 is
// given. NaN for infinity and NaN.
struct QuarterTurns {
  double r, r_low;
  int n;
};
QuarterTurns reduce_quarter_turns(double x);

template <class T>
struct TrigConstants;

template <>
struct TrigConstants<float> {
  static constexpr float limit = 30000;
  static constexpr float two_over_pi = 0.63661975f;
  static constexpr float half_pi[3] = {1.5707964f, -4.371139e-08f, -1.7151245e-15f};
  // (sin(r) / r - 1) / r^2 and (cos(r) - 1 + r^2 / 2) / r^4, in r^2.
  static constexpr std::array sin{-1.6666655e-01f, 8.332188e-03f, -1.9518095e-04f};
  static constexpr std::array cos{4.1666646e-02f, -1.388731e-03f, 2.4432327e-05f};
};

template <>
struct TrigConstants<double> {
  static constexpr double limit = 1e6;
  static constexpr double two_over_pi = 0.6366197723675814;
  static constexpr double half_pi[3] = {1.5707963267948966, 6.123233995736766e-17,
                                        -1.4973849048591698e-33};
  static constexpr std::array sin{-0.16666666666666666,   0.008333333333333042,
                                  -0.0001984126984096246, 2.7557319073971716e-06,
                                  -2.505207091879595e-08, 1.6054310940943566e-10,
                                  -7.389428595561646e-13};
  static constexpr std::array cos{0.041666666666666595,   -0.0013888888888873325,
                                  2.4801587288983743e-05, -2.755731421011387e-07,
                                  2.08757042789608e-09,   -1.135868387089149e-11};
};

template <RealLanes V>
struct TrigReduced {
  V r, r_low;       // 0 where r is small, because it would not change the result
  BitLanesOf<V> n;  // its two low bits are those of the quadrant; the others are arbitrary
};

template <class T>
TrigReduced<T> reduce_trig_far(T x) {
  const QuarterTurns turns = reduce_quarter_turns(x);
  const T r = T(turns.r);
  return {r, T((turns.r - r) + turns.r_low), BitsOf<T>(turns.n)};
}

template <RealLanes V>
[[gnu::always_inline]] inline TrigReduced<V> reduce_trig(V x) {
  using T = ElementOf<V>;
  using C = TrigConstants<T>;
  V shifted = fma(x, V(C::two_over_pi), V(Format<T>::magic));
  V n = shifted - V(Format<T>::magic);
  V r = fma(n, V(-C::half_pi[0]), x);
  V rest = fma(n, V(-C::half_pi[1]), r);
  // The error of that rounding; exact where rest is within a factor 2 of r.
  V low = fma(n, V(-C::half_pi[1]), r - rest);
  low = select(abs(rest) > V(T(0x1p-8)), low, V(0));
  TrigReduced<V> reduced{fma(n, V(-C::half_pi[2]), rest), low, to_bits(shifted)};
  auto is_far = !(abs(x) <= V(C::limit));
  if (any(is_far)) [[unlikely]] {
    if constexpr (Lanes<V>::width == 1) {
      reduced = reduce_trig_far(x);
    } else {
      for (int i = 0; i < V::width; ++i) {
        if (!is_far[i]) continue;
        const auto lane = reduce_trig_far(x[i]);
        reduced.r.v[i] = lane.r;
        reduced.r_low.v[i] = lane.r_low;
        reduced.n.v[i] = lane.n;
      }
    }
  }
  return reduced;
}

// sin(r + low) and cos(r + low), given square = r^2.
template <RealLanes V>
[[gnu::always_inline]] inline V sin_near_zero(V r, V low, V square) {
  return r + fma(r * square, polynomial(square, TrigConstants<ElementOf<V>>::sin), low);
}
template <RealLanes V>
[[gnu::always_inline]] inline V cos_near_zero(V r, V low, V square) {
  V p = polynomial(square, TrigConstants<ElementOf<V>>::cos);
  return V(1) + fma(square, fma(square, p, V(ElementOf<V>(-0.5))), -(r * low));
}

template <RealLanes V>
[[gnu::always_inline]] inline MaskOf<V> is_odd(BitLanesOf<V> n) {
  using I = BitLanesOf<V>;
  return (n & I(1)) != I(0);
}
// The second lowest bit of n, moved to the sign bit.
template <RealLanes V>
[[gnu::always_inline]] inline BitLanesOf<V> sign_of_half_turns(BitLanesOf<V> n) {
  using I = BitLanesOf<V>;
  return shift_left(n & I(2), sizeof(ElementOf<V>) * 8 - 2);
}

template <RealLanes V>
[[gnu::always_inline]] inline V sin(V x) {
  auto [r, low, n] = reduce_trig(x);
  V square = r * r;
  V y = select(is_odd<V>(n), cos_near_zero(r, low, square), sin_near_zero(r, low, square));
  y = from_bits(to_bits(y) ^ sign_of_half_turns<V>(n));
  return select(x == V(0), x, y);  // keeps -0
}

template <RealLanes V>
[[gnu::always_inline]] inline V cos(V x) {
  auto [r, low, n] = reduce_trig(x);
  V square = r * r;
  V y = select(is_odd<V>(n), sin_near_zero(r, low, square), cos_near_zero(r, low, square));
  return from_bits(to_bits(y) ^ sign_of_half_turns<V>(n + BitLanesOf<V>(1)));
}

// sin / cos of the remainder, or -cos / sin in odd quadrants. Both are sums of two parts whose
// rounding errors are kept, and the quotient is corrected by its residual.
template <RealLanes V>
V tan(V x) {
  using T = ElementOf<V>;
  using C = TrigConstants<T>;
  auto [r, low, n] = reduce_trig(x);
  V square = r * r;
  V sine_part = fma(r * square, polynomial(square, C::sin), low);
  V sine = r + sine_part, sine_low = (r - sine) + sine_part;
  V cosine_part = fma(square, fma(square, polynomial(square, C::cos), V(T(-0.5))), -(r * low));
  V cosine = V(1) + cosine_part, cosine_low = (V(1) - cosine) + cosine_part;
  auto odd = is_odd<V>(n);
  V numerator = select(odd, cosine, sine), denominator = select(odd, -sine, cosine);
  V numerator_low = select(odd, cosine_low, sine_low);
  V denominator_low = select(odd, -sine_low, cosine_low);
  V inverse = V(1) / denominator;
  V y = numerator * inverse;
  V residual = fma(-y, denominator_low, fma(-y, denominator, numerator) + numerator_low);
  y = fma(residual, inverse, y);
  y = select(abs(x) <= V(std::numeric_limits<T>::max()), y, V(Format<T>::nan));
  return select(x == V(0), x, y);  // keeps -0
}

}  // namespace plait::math
