// The regularized incomplete beta function.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/math.h>
#include <plait/base/math/special.h>

namespace plait::math {
namespace {

// x^a y^b / B(a, b), for y = 1 - x. Large gamma functions go by Stirling's formula, whose large
// terms cancel against the powers.
double beta_density(double a, double b, double x, double y) {
  if (a >= 8 && b >= 8) {
    const double distance = x * b - y * a;
    const double exponent = a * log_minus(x * ((a + b) / a), distance / a) +
                            b * log_minus(y * ((a + b) / b), -distance / b);
    const double rest = stirling_remainder(a + b) - stirling_remainder(a) - stirling_remainder(b);
    return sqrt(a / (2 * pi) * (b / (a + b))) * exp(exponent + rest);
  }
  if (a >= 8) return beta_density(b, a, y, x);
  const double power = x < 0.5 ? log1p(-x) : log(y);
  if (b >= 8) {
    const double rest = fma(b, power, b * log_minus(1 + a / b, a / b)) - 0.5 * log1p(a / b) +
                        (stirling_remainder(a + b) - stirling_remainder(b));
    const double base = x * (a + b);
    return pow(base, a) * exp(rest) * reciprocal_gamma(a);
  }
  const double gammas = reciprocal_gamma(a) * reciprocal_gamma(b) / reciprocal_gamma(a + b);
  return pow(x, a) * exp(b * power) * gammas;
}

// I_x(a, b) by the continued fraction of DLMF 8.17.22, with Lentz's algorithm.
double by_beta_fraction(double a, double b, double x, double y) {
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  constexpr double tiny = 1e-300;
  if (abs(d) < tiny) d = tiny;
  d = 1 / d;
  double result = d;
  const double most = 1000 + 20 * sqrt(a < b ? b : a);
  for (double m = 1; m < most; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / fma(even, d, 1);
    c = 1 + even / c;
    result *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / fma(odd, d, 1);
    c = 1 + odd / c;
    const double factor = d * c;
    result *= factor;
    if (abs(factor - 1) < 2e-16) break;
  }
  return beta_density(a, b, x, y) * result / a;
}

// 1 - I_y(b, a) where that is small, for b < 1 and small y: I_y(b, a) = y^b / (b B(a, b)) (1 +
// b sum of (1 - a)_n y^n / (n! (b + n))), n >= 1 (DLMF 8.17.7).
double complement_of_small(double a, double b, double y) {
  // log Gamma(a + b) - log Gamma(a), by Taylor's series about the middle where b is small.
  const double middle = a + 0.5 * b;
  const double gammas = b < 1e-3 * a ? b * fma(b * b / 24, polygamma(2, middle), digamma(middle))
                                     : lgamma(a + b) - lgamma(a);
  const double exponent = b * log(y) + gammas - lgamma_above_one(b);
  double term = 1, sum = 0;
  for (double n = 1; n < 500; ++n) {
    term *= (n - a) * y / n;
    sum += term / (b + n);
    if (abs(term) < 1e-17 * abs(sum)) break;
  }
  return -expm1(exponent) - exp(exponent) * b * sum;
}

}  // namespace

double betainc(double a, double b, double x) {
  if (!(a > 0 && b > 0 && x >= 0 && x <= 1)) return nan;
  if (x == 0 || x == 1) return x;
  if (a == infinity || b == infinity) return a == b ? nan : a == infinity ? 0 : 1;
  const double y = 1 - x;
  if (x * (a + b + 2) < a + 1) return by_beta_fraction(a, b, x, y);
  const double other = by_beta_fraction(b, a, y, x);
  return other > 0.9 && b < 1 ? complement_of_small(a, b, y) : 1 - other;
}

}  // namespace plait::math
