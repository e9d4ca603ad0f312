// erf, erfc, erf_inv.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/math/exp.h>
#include <plait/base/math/log.h>

namespace plait::math {

template <class T>
struct ErfConstants;

template <>
struct ErfConstants<float> {
  static constexpr float near_zero = 0.84375f;
  // erf(x) / x - 1, in x^2 on [0, 0.84^2].
  static constexpr std::array erf{1.2837917e-01f,  -3.7612593e-01f, 1.1282913e-01f,
                                  -2.6809536e-02f, 5.0618816e-03f,  -6.374964e-04f};
  // -log2(erfc(x)) on [0.84, 4], to the same error of erfc everywhere.
  static constexpr std::array log_erfc{1.5564662e-04f, 1.6274247e+00f,  9.1834772e-01f,
                                       1.5075432e-01f, -3.2464009e-02f, 4.4914195e-03f,
                                       -2.930966e-04f};
};

template <>
struct ErfConstants<double> {
  static constexpr double near_zero = 0.921875;
  static constexpr std::array erf{
      0.12837916709551256,     -0.3761263890318332,    0.11283791670934927,
      -0.026866170641424034,   0.005223977590314038,   -0.000854832506484101,
      0.00012055264083606051,  -1.492406603863874e-05, 1.6438036599453695e-06,
      -1.6126869463464331e-07, 1.3319041442186425e-08, -6.945015388976705e-10};
  // (1 + 2a) erfc(a) e^(a^2) - 1 in q = (a - 4) / (a + 4), for a on [0.49, 28].
  static constexpr std::array tail{
      0.23299511862555253,    -0.1396211168405616,    0.015379652102613254,
      0.06809705425457827,    -0.10103906603589938,   0.09373283500258885,
      -0.06633036582199155,   0.03716751546525954,    -0.016197733938071467,
      0.005031970656484011,   -0.0007577741332289905, -0.0001992605410391298,
      0.0001506253312005756,  -2.438547453668131e-05, -1.1231979669027114e-05,
      5.678486496064011e-06,  3.1071694300450007e-07, -7.812207460492908e-07,
      5.7536367498279216e-08, 7.391514565753776e-08,  -8.803044189079583e-09};
  // erf_inv(x) / x in w = -log(1 - x^2) on [0, 5], and in sqrt(w) on [sqrt(5), 6.08]: relative
  // errors 1.5e-10 and 5.6e-9.
  static constexpr std::array inverse_p{0.8862269255829748,     0.27227837182107545,
                                        0.047967372015917435,   0.005728439973031743,
                                        0.00042140028492502254, 1.329071378702825e-05};
  static constexpr std::array inverse_q{1.0, 0.04543386167333899, 0.029198734464945905,
                                        0.0008625866164774232, 0.00013311545024066523};
  static constexpr std::array inverse_far_p{0.01413481383296373, 1.106505347452881,
                                            -1.9376759050223213, 1.5010286300270508,
                                            -0.5348155768877999, 0.08011938038628227};
  static constexpr std::array inverse_far_q{1.0,
                                            -1.7550282195031517,
                                            1.4063006726557652,
                                            -0.5144897445800838,
                                            0.07901450084710494,
                                            2.9032562491124875e-05};
};

template <RealLanes V>
[[gnu::always_inline]] inline V erf_near_zero(V x) {
  if constexpr (is_float<ElementOf<V>>)
    return fma(x, horner(x * x, ErfConstants<float>::erf), x);
  else
    return fma(x, polynomial(x * x, ErfConstants<double>::erf), x);
}

// erfc(a) = 2^-Q(a) for 0.84 <= a <= 4, rounded well enough to be taken from 1. Float only: the
// result is normal, so that its exponent is put in by an integer addition.
template <RealLanes V>
[[gnu::always_inline]] inline V erfc_rough(V a) {
  using C = ExpConstants<float>;
  using F = Format<float>;
  V q = horner(a, ErfConstants<float>::log_erfc);
  V shifted = q + V(F::magic);
  V r = (shifted - V(F::magic)) - q;
  V y = fma(fma(horner(r, C::exp2), r, V(C::exp2_first)), r, V(1));
  return from_bits(to_bits(y) - shift_left(to_bits(shifted), F::mantissa_bits));
}

// erfc(a) for a >= 0.49, with relative accuracy: e^(-a^2), its argument in two parts, times (1 +
// G(q)) / (1 + 2a) with q = (a - 4) / (a + 4). G is small, so that its rounding hardly counts
// (Shepherd and Laframboise, 1981); its polynomial of degree 20 is truncated from a Chebyshev
// series. Double only.
template <RealLanes V>
[[gnu::always_inline]] inline V erfc_tail(V a) {
  using C = ErfConstants<double>;
  a = lesser(V(28), a);  // erfc is 0 from 27.3 on
  V square = a * a;
  auto [r, k] = reduce_exp(-square);
  r = r - fma(a, a, -square);
  V e = exp_near_zero(r);
  V g = polynomial((a - V(4)) / (a + V(4)), C::tail);
  return scale(fma(e, g, e) / fma(V(2), a, V(1)), k);
}

// x + x P(x^2) near zero; beyond, 1 - erfc(a), in float as 1 - 2^-Q(a). NaN counts as near.
template <RealLanes V>
[[gnu::always_inline]] inline V erf(V x) {
  using T = ElementOf<V>;
  using C = ErfConstants<T>;
  V a = abs(x);
  V large;
  if constexpr (is_float<T>) {
    large = V(1) - erfc_rough(lesser(V(4), a));
  } else {
    large = V(1) - erfc_tail(a);
  }
  return select(a >= V(C::near_zero), copysign(large, x), erf_near_zero(x));
}

// 1 - erf(x) below 1/2, the tail above, 2 minus it on the left.
template <RealLanes V>
V erfc(V x) {
  if constexpr (is_float<ElementOf<V>>) {
    return in_double([](auto lanes) { return erfc(lanes); }, x);
  } else {
    V a = abs(x);
    V tail = erfc_tail(a);
    tail = select(x < V(0), V(2) - tail, tail);
    V y = select(a < V(0.5), V(1) - erf_near_zero(x), tail);
    return select(is_nan(x), x + x, y);  // quiets a signaling NaN
  }
}

// erf_inv to a relative error of 6e-9, for |x| < 1. Double only.
template <RealLanes V>
[[gnu::always_inline]] inline V erf_inv_estimate(V x) {
  using C = ErfConstants<double>;
  V w = -log((V(1) - x) * (V(1) + x));
  V root = sqrt(w);
  auto is_far = w > V(5);
  V p = select(is_far, polynomial(root, C::inverse_far_p), polynomial(w, C::inverse_p));
  V q = select(is_far, polynomial(root, C::inverse_far_q), polynomial(w, C::inverse_q));
  return x * (p / q);
}

// The estimate, and in double one step of Halley's method on erf (near 0) or erfc:
// u = (erf(y) - x) sqrt(pi)/2 e^(y^2), y - u / (1 + u y). From Giles' idea of expanding in w.
template <RealLanes V>
V erf_inv(V x) {
  using T = ElementOf<V>;
  if constexpr (is_float<T>) {
    V y = in_double([](auto lanes) { return erf_inv_estimate(lanes); }, x);
    y = select(abs(x) < V(1), y, V(Format<T>::nan));
    return select(abs(x) == V(1), copysign(V(Format<T>::infinity), x), y);
  } else {
    V a = abs(x);
    V y = erf_inv_estimate(a);
    V error = select(a < V(0.75), erf_near_zero(y) - a, (V(1) - a) - erfc_tail(y));
    V u = error * (V(0.8862269254527580) * exp(y * y));
    y = y - u / fma(u, y, V(1));
    y = copysign(select(a == V(1), V(Format<T>::infinity), y), x);
    return select(a <= V(1), y, V(Format<T>::nan));
  }
}

}  // namespace plait::math
