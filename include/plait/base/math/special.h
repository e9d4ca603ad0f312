// Special functions: of the incomplete gamma and beta functions, zeta, Bessel, error and integral
// functions. Scalar routines in double (lib/base/math_special*.cpp); packs loop over their lanes,
// floats are evaluated in double.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/math/blocks.h>

namespace plait::math {

inline constexpr double pi = 3.141592653589793, euler = 0.5772156649015329;
inline constexpr double infinity = Format<double>::infinity, nan = Format<double>::nan;

// log Gamma(1 + y) for y in [-1/2, 3/2], relatively accurate beside its zeros 0 and 1.
double lgamma_above_one(double y);
// log Gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2, for x >= 8.
double stirling_remainder(double x);
// 1 / Gamma(a), for a > 0.
double reciprocal_gamma(double a);
// log(whole) - u for whole = 1 + u, relatively accurate at u = 0.
double log_minus(double whole, double u);

// The regularized incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x), for a, x >= 0.
double igamma(double a, double x);
double igammac(double a, double x);
// dP/da; and the derivative in a of the x at which P(a, x) has a given value, -(dP/da) / (dP/dx).
double igamma_grad_a(double a, double x);
double random_gamma_grad(double a, double x);

// The regularized incomplete beta function I_x(a, b), for a, b > 0 and x in [0, 1].
double betainc(double a, double b, double x);

// Hurwitz's zeta function, the sum of (q + k)^-s over k >= 0, for s > 1.
double zeta(double s, double q);
// The derivative of digamma of order m = 0, 1, 2, ...
double polygamma(double m, double x);

// exp(-|x|) I_0(x) and exp(-|x|) I_1(x), modified Bessel functions.
double bessel_i0e(double x);
double bessel_i1e(double x);

// exp(x^2) erfc(x).
double erfcx(double x);
// The x at which the standard normal distribution function is p.
double ndtri(double p);

// The exponential integrals Ei(x), the principal value, and E_n(x) for whole n.
double expi(double x);
double expn(double n, double x);
// Spence's function, the integral of log(t) / (1 - t) from 1 to x: the dilogarithm of 1 - x.
double spence(double x);

// exp(-x^2) times the integral of exp(t^2) from 0 to x.
double dawsn(double x);
// The integrals of sin(pi t^2 / 2) and cos(pi t^2 / 2) from 0 to x.
double fresnel_sine(double x);
double fresnel_cosine(double x);
// The integral of sin(t) / t from 0 to x, and that of cos(t) / t from infinity to |x|.
double sine_integral(double x);
double cosine_integral(double x);
// Owen's T, the probability of X > h and 0 < Y < a X for normal X and Y.
double owens_t(double h, double a);

// Kummer's confluent hypergeometric function M(a, b, x), and Gauss's F(a, b; c; z) for z <= 1.
double hyp1f1(double a, double b, double x);
double hyp2f1(double a, double b, double c, double z);

#define PLAIT_LANES(function)                                           \
  inline float function(float x) { return float(function(double(x))); } \
  template <class T, int N>                                             \
  Pack<T, N> function(Pack<T, N> x) {                                   \
    return each_lane([](T lane) { return function(lane); }, x);         \
  }
#define PLAIT_LANES_OF_TWO(function)                                                        \
  inline float function(float x, float y) { return float(function(double(x), double(y))); } \
  template <class T, int N>                                                                 \
  Pack<T, N> function(Pack<T, N> x, Pack<T, N> y) {                                         \
    return each_lane([](T a, T b) { return function(a, b); }, x, y);                        \
  }
PLAIT_LANES_OF_TWO(igamma)
PLAIT_LANES_OF_TWO(igammac)
PLAIT_LANES_OF_TWO(igamma_grad_a)
PLAIT_LANES_OF_TWO(random_gamma_grad)
PLAIT_LANES_OF_TWO(zeta)
PLAIT_LANES_OF_TWO(polygamma)
PLAIT_LANES_OF_TWO(expn)
PLAIT_LANES_OF_TWO(owens_t)
PLAIT_LANES(bessel_i0e)
PLAIT_LANES(bessel_i1e)
PLAIT_LANES(erfcx)
PLAIT_LANES(ndtri)
PLAIT_LANES(expi)
PLAIT_LANES(spence)
PLAIT_LANES(dawsn)
PLAIT_LANES(fresnel_sine)
PLAIT_LANES(fresnel_cosine)
PLAIT_LANES(sine_integral)
PLAIT_LANES(cosine_integral)
#undef PLAIT_LANES
#undef PLAIT_LANES_OF_TWO

inline float betainc(float a, float b, float x) {
  return float(betainc(double(a), double(b), double(x)));
}
inline float hyp1f1(float a, float b, float x) {
  return float(hyp1f1(double(a), double(b), double(x)));
}
inline float hyp2f1(float a, float b, float c, float z) {
  return float(hyp2f1(double(a), double(b), double(c), double(z)));
}

}  // namespace plait::math
