// exp, exp2, expm1, sinh, cosh, tanh, logistic.
//
// All reduce x = k ln 2 + r with |r| <= ln 2 / 2 by Cody and Waite's two-part ln 2 (the first
// product is exact under fma) and evaluate a minimax polynomial (Remez, coefficients rounded one by
// one).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/math/blocks.h>

namespace plait::math {

template <class T>
struct ExpConstants;

template <>
struct ExpConstants<float> {
  static constexpr float log2e = 1.442695f;
  static constexpr float ln2_high = 0.6931472f, ln2_low = -1.9046542e-09f;
  static constexpr float lowest = -104, highest = 89;     // exp is 0 below, infinity above
  static constexpr float lowest2 = -151, highest2 = 129;  // the same for exp2
  static constexpr float lowest_m1 = -20;                 // expm1 is -1 below
  static constexpr float tanh_highest = 10;               // tanh is 1 above
  // (e^r - 1 - r) / r^2, for exp and, to a smaller error near 0, for expm1.
  static constexpr std::array exp{4.9999994e-01f, 1.6666515e-01f, 4.1668084e-02f, 8.369354e-03f,
                                  1.3840563e-03f};
  static constexpr std::array expm1{5.0e-01f,      1.6666636e-01f, 4.166651e-02f,
                                    8.341511e-03f, 1.393054e-03f,  1.5015287e-04f};
  // ((2^r - 1) / r - ln 2) / r on [-1/2, 1/2], with the ln 2 it goes with.
  static constexpr float exp2_first = 6.931472e-01f;
  static constexpr std::array exp2{2.4022594e-01f, 5.5503663e-02f, 9.625443e-03f, 1.3387925e-03f,
                                   1.3333613e-04f};
  // (sinh(x) / x - 1) / x^2 in x^2 on [0, 1].
  static constexpr std::array sinh{1.6666667e-01f, 8.333311e-03f, 1.9842635e-04f, 2.7839255e-06f};
  // (tanh(x) / x - 1) / x^2 in x^2 on [0, 0.625^2], a quotient.
  static constexpr std::array tanh_p{-3.3333308e-01f, -1.5419311e-03f};
  static constexpr std::array tanh_q{1.0f, 4.0461347e-01f};
};

template <>
struct ExpConstants<double> {
  static constexpr double log2e = 1.4426950408889634;
  static constexpr double ln2_high = 0.6931471805599453, ln2_low = 2.3190468138462996e-17;
  static constexpr double lowest = -746, highest = 710;
  static constexpr double lowest2 = -1076, highest2 = 1025;
  static constexpr double lowest_m1 = -40;
  static constexpr double tanh_highest = 20;
  static constexpr std::array exp{0.5,
                                  0.16666666666666677,
                                  0.041666666666666685,
                                  0.008333333333321832,
                                  0.001388888888889647,
                                  0.00019841269884989443,
                                  2.4801587264697008e-05,
                                  2.7557245409060985e-06,
                                  2.7557354212011293e-07,
                                  2.5108709489787127e-08,
                                  2.088087485531498e-09};
  static constexpr std::array expm1 = exp;
  static constexpr double exp2_first = 0.6931471805599453;
  static constexpr std::array exp2{0.24022650695910172,    0.055504108664824574,
                                   0.009618129107577075,   0.0013333558145567784,
                                   0.00015403530478831217, 1.5252734738048628e-05,
                                   1.3215424510169027e-06, 1.0177655468174694e-07,
                                   7.0756070415387245e-09, 4.5194943587257007e-10};
  static constexpr std::array sinh{0.16666666666666669,    0.008333333333332915,
                                   0.00019841269841589272, 2.7557319108466277e-06,
                                   2.5052130680207568e-08, 1.6056686625184106e-10,
                                   7.775708996330217e-13};
  static constexpr std::array tanh_p{-0.33333333333333326, -0.02049685439218203,
                                     -0.00019909193210219137};
  static constexpr std::array tanh_q{1.0, 0.46149056317653203, 0.023288739162409443,
                                     0.00020644151900407444};
};

// x = k ln 2 + r.
template <RealLanes V>
struct ExpReduced {
  V r;
  BitLanesOf<V> k;
};
template <RealLanes V>
[[gnu::always_inline]] inline ExpReduced<V> reduce_exp(V x) {
  using C = ExpConstants<ElementOf<V>>;
  using F = Format<ElementOf<V>>;
  V shifted = fma(x, V(C::log2e), V(F::magic));
  V n = shifted - V(F::magic);
  V r = fma(n, V(-C::ln2_high), x);
  r = fma(n, V(-C::ln2_low), r);
  return {r, to_bits(shifted) - BitLanesOf<V>(F::magic_bits)};
}

// e^r for |r| <= ln 2 / 2.
template <RealLanes V>
[[gnu::always_inline]] inline V exp_near_zero(V r) {
  V q = polynomial(r, ExpConstants<ElementOf<V>>::exp);
  return V(1) + fma(r * r, q, r);
}

template <RealLanes V>
[[gnu::always_inline]] inline V clamp(V x, ElementOf<V> low, ElementOf<V> high) {
  return lesser(V(high), greater(V(low), x));  // in this order NaN stays
}

// Polynomial of degree 6 (float), 12 (double).
template <RealLanes V>
[[gnu::always_inline]] inline V exp(V x) {
  using C = ExpConstants<ElementOf<V>>;
  auto [r, k] = reduce_exp(clamp(x, C::lowest, C::highest));
  return scale(exp_near_zero(r), k);
}

// x = k + r, exactly; polynomial of degree 6 (float), 11 (double).
template <RealLanes V>
[[gnu::always_inline]] inline V exp2(V x) {
  using C = ExpConstants<ElementOf<V>>;
  using F = Format<ElementOf<V>>;
  x = clamp(x, C::lowest2, C::highest2);
  V shifted = x + V(F::magic);
  V r = x - (shifted - V(F::magic));
  V q = fma(r, polynomial(r, C::exp2), V(C::exp2_first));
  return scale(fma(r, q, V(1)), to_bits(shifted) - BitLanesOf<V>(F::magic_bits));
}

// 2^k (e^r - 1) + (2^k - 1), as (2^k - 1 + 2^k r) + 2^k (e^r - 1 - r), the small part with what the
// reduction lost; polynomial of degree 7 (float), 12 (double).
template <RealLanes V>
[[gnu::always_inline]] inline V expm1(V x) {
  using T = ElementOf<V>;
  using C = ExpConstants<T>;
  V clamped = clamp(x, C::lowest_m1, C::highest);
  auto [r, k] = reduce_exp(clamped);
  V n = to_real<V>(k);
  V low = fma(n, V(-C::ln2_low), fma(n, V(-C::ln2_high), clamped) - r);
  low = fma(r * r, polynomial(r, C::expm1), low);
  // Half of 2^k, because 2^k may overflow where the result does not.
  V half_scale = power_of_two<V>(k - BitLanesOf<V>(1));
  V y = V(2) * fma(half_scale, low, fma(half_scale, r, half_scale - V(T(0.5))));
  // Halving would round denormals, and drops the sign of -0.
  return select(abs(x) < V(4 * Format<T>::min_normal), x, y);
}

// x + x^3 P(x^2) below 1, (e^|x| - e^-|x|) / 2 above.
template <RealLanes V>
V sinh(V x) {
  using T = ElementOf<V>;
  using C = ExpConstants<T>;
  V a = abs(x);
  auto [r, k] = reduce_exp(lesser(V(C::highest + 2), a));
  V e = scale(exp_near_zero(r), k - BitLanesOf<V>(1));
  V z = x * x;
  V small = fma(x * z, polynomial(z, C::sinh), x);
  V large = copysign(e - V(T(0.25)) / e, x);
  return select(a < V(1), select(a < V(T(1e-9)), x, small), large);  // preserves -0
}

// (e^|x| + e^-|x|) / 2.
template <RealLanes V>
V cosh(V x) {
  using T = ElementOf<V>;
  auto [r, k] = reduce_exp(lesser(V(ExpConstants<T>::highest + 2), abs(x)));
  V e = scale(exp_near_zero(r), k - BitLanesOf<V>(1));
  return e + V(T(0.25)) / e;
}

// x + x^3 P(x^2) / Q(x^2) below 0.625, 1 - 2 / (e^2|x| + 1) above: one division serves both.
template <RealLanes V>
[[gnu::always_inline]] inline V tanh(V x) {
  using T = ElementOf<V>;
  using C = ExpConstants<T>;
  V a = lesser(V(C::tanh_highest), abs(x));
  auto [r, k] = reduce_exp(a + a);
  V e = exp_near_zero(r) * power_of_two<V>(k);
  V z = a * a;
  auto is_small = a < V(T(0.625));
  V numerator = select(is_small, (a * z) * polynomial(z, C::tanh_p), V(-2));
  V denominator = select(is_small, polynomial(z, C::tanh_q), e + V(1));
  return copysign(select(is_small, a, V(1)) + numerator / denominator, x);
}

// 1 / (1 + e^-x), as e^x / (1 + e^x) for negative x: no overflow, full accuracy on both sides. The
// quotient is corrected by its residual, so that only the error of e counts. The denominator is
// kept negated: a compiler may fold a negation into fma or not, which would show in the sign of a
// NaN.
template <RealLanes V>
[[gnu::always_inline]] inline V logistic(V x) {
  V e = exp(-abs(x));
  V d = V(-1) - e, d_low = (V(-1) - d) - e;
  V numerator = select(x < V(0), e, V(1));
  V inverse = V(-1) / d;
  V y = numerator * inverse;
  V residual = fma(y, d_low, fma(y, d, numerator));
  return fma(residual, inverse, y);
}

}  // namespace plait::math
