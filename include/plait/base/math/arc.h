// asin, acos, atan, atan2.
//
// Each reduces to a quotient of at most 0.55 or a root of at most 1/2, a minimax polynomial there,
// and a multiple of pi/4 added in two parts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/math/blocks.h>

namespace plait::math {

template <class T>
struct ArcConstants;

template <>
struct ArcConstants<float> {
  static constexpr float quarter_pi_high = 0.7853982f, quarter_pi_low = -2.1855694e-08f;
  // (atan(x) / x - 1) / x^2 and (asin(x) / x - 1) / x^2, in x^2.
  static constexpr std::array atan{-3.3333316e-01f, 1.9998872e-01f,  -1.4260453e-01f,
                                   1.08466096e-01f, -7.6393664e-02f, 3.407036e-02f};
  static constexpr std::array asin{1.666666e-01f,  7.500521e-02f,  4.4513635e-02f,
                                   3.1836037e-02f, 1.4329378e-02f, 3.7672665e-02f};
};

template <>
struct ArcConstants<double> {
  static constexpr double quarter_pi_high = 0.7853981633974483;
  static constexpr double quarter_pi_low = 3.061616997868383e-17;
  static constexpr std::array atan{
      -0.33333333333333154,  0.1999999999995213,   -0.14285714281250536,  0.11111110901168432,
      -0.09090903252142545,  0.07692202947108502,  -0.06665390072178341,  0.058714496199496445,
      -0.051967940457943514, 0.044724178460512076, -0.034460535959706044, 0.020139014187791054,
      -0.006307563007282807};
  static constexpr std::array asin{
      0.16666666666666763,  0.0749999999997014,    0.04464285717523317,  0.030381942678353008,
      0.022372215806594906, 0.017351597478381647,  0.013980992810054892, 0.01139751791355963,
      0.010787989397325922, 0.0036774575249646415, 0.021777283413270853, -0.021097110864306236,
      0.03268949473307517};
};

// multiple * pi/4 + t.
template <RealLanes V>
[[gnu::always_inline]] inline V add_quarter_pis(V multiple, V t) {
  using C = ArcConstants<ElementOf<V>>;
  return fma(multiple, V(C::quarter_pi_high), fma(multiple, V(C::quarter_pi_low), t));
}

template <RealLanes V>
[[gnu::always_inline]] inline V atan_near_zero(V q) {
  V z = q * q;
  return fma(q * z, polynomial(z, ArcConstants<ElementOf<V>>::atan), q);
}
// asin(q) - q.
template <RealLanes V>
[[gnu::always_inline]] inline V asin_tail(V q, V square) {
  return product(q * square, polynomial(square, ArcConstants<ElementOf<V>>::asin));
}

// Three ranges, as in Cephes: a, (a - 1) / (a + 1), -1 / a. The middle one begins where the result
// passes 1/2, so that the error of its quotient (three roundings) counts half.
template <RealLanes V>
[[gnu::always_inline]] inline V atan(V x) {
  using T = ElementOf<V>;
  V a = abs(x);
  auto is_middle = a > V(T(0.55)), is_large = a > V(T(2.414213562373095));
  V numerator = select(is_large, V(-1), select(is_middle, a - V(1), a));
  V denominator = select(is_large, a, select(is_middle, a + V(1), V(1)));
  V multiple = select(is_large, V(2), select(is_middle, V(1), V(0)));
  V y = add_quarter_pis(multiple, atan_near_zero(numerator / denominator));
  return copysign(y, x);
}

// The angle of (smaller, larger) is reduced as in atan, then reflected into its octant.
template <RealLanes V>
V atan2(V y, V x) {
  using T = ElementOf<V>;
  V ax = abs(x), ay = abs(y);
  V a = lesser(ax, ay), b = greater(ax, ay);
  V shrink = select(b > V(std::numeric_limits<T>::max() / 4), V(T(0.25)), V(1));
  a = a * shrink, b = b * shrink;  // so that a + b does not overflow
  auto is_diagonal = a == V(Format<T>::infinity);
  a = select(is_diagonal, V(1), a), b = select(is_diagonal, V(1), b);
  auto is_middle = a * V(T(1 / 0.55)) > b;  // b * 0.55 would be coarse for denormals
  V q = select(is_middle, a - b, a) / select(is_middle, a + b, b);
  V t = atan_near_zero(select(b == V(0), V(0), q));
  V multiple = select(is_middle, V(1), V(0));
  auto is_steep = ay > ax;  // pi/2 - angle
  multiple = select(is_steep, V(2) - multiple, multiple);
  t = select(is_steep, -t, t);
  auto is_left = sign_of(x) != BitLanesOf<V>(0);  // pi - angle
  multiple = select(is_left, V(4) - multiple, multiple);
  t = select(is_left, -t, t);
  V angle = copysign(add_quarter_pis(multiple, t), y);
  return select(is_nan(x), x, select(is_nan(y), y, angle));
}

// Beyond 1/2, asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)).
template <RealLanes V>
V asin(V x) {
  using T = ElementOf<V>;
  using C = ArcConstants<T>;
  V a = abs(x);
  auto is_large = a > V(T(0.5));
  V z = select(is_large, fma(a, V(T(-0.5)), V(T(0.5))), a * a);
  V q = select(is_large, sqrt(z), a);
  V tail = asin_tail(q, z);
  V large = fma(q, V(-2), V(2 * C::quarter_pi_high)) + fma(tail, V(-2), V(2 * C::quarter_pi_low));
  V y = copysign(select(is_large, large, q + tail), x);
  return select(a <= V(1), y, V(Format<T>::nan));
}

// acos(x) = pi/2 - asin(x); 2 asin(sqrt((1 - a) / 2)), and pi minus it on the left.
template <RealLanes V>
V acos(V x) {
  using T = ElementOf<V>;
  V a = abs(x);
  auto is_large = a > V(T(0.5));
  V z = select(is_large, fma(a, V(T(-0.5)), V(T(0.5))), a * a);
  V q = select(is_large, sqrt(z), x);
  V t = q + asin_tail(q, z);
  auto is_left = is_large & (x < V(0));
  V multiple = select(is_large, select(is_left, V(4), V(0)), V(2));
  V y = add_quarter_pis(multiple, t * select(is_large, select(is_left, V(-2), V(2)), V(-1)));
  return select(a <= V(1), y, V(Format<T>::nan));
}

}  // namespace plait::math
