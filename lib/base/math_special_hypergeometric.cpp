// Hypergeometric functions of real arguments.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/math.h>
#include <plait/base/math/special.h>

namespace plait::math {
namespace {

bool is_pole_of_gamma(double x) { return x <= 0 && x == floor(x); }

// 1 / Gamma(x) with its sign: 0 at poles.
struct SignedLog {
  double sign, logarithm;  // of Gamma(x)
};
SignedLog signed_gamma(double x) {
  const bool is_negative = x < 0 && rem(floor(x), 2.0) != 0;
  return {is_negative ? -1.0 : 1.0, lgamma(x)};
}
// Gamma(a) Gamma(b) / (Gamma(c) Gamma(d)), 0 where c or d is a pole.
double gamma_ratio(double a, double b, double c, double d) {
  if (is_pole_of_gamma(c) || is_pole_of_gamma(d)) return 0;
  const SignedLog A = signed_gamma(a), B = signed_gamma(b), C = signed_gamma(c),
                  D = signed_gamma(d);
  const double size = exp((A.logarithm + B.logarithm) - (C.logarithm + D.logarithm));
  return A.sign * B.sign * C.sign * D.sign * size;
}

// The sum of (a)_n / (b)_n x^n / n! (DLMF 13.2.2).
double kummer_series(double a, double b, double x) {
  double term = 1, sum = 1;
  for (double n = 0; n < 20000; ++n) {
    term *= (a + n) / (b + n) * (x / (n + 1));
    sum += term;
    if (term == 0 || (abs(term) < 1e-17 * abs(sum) && n > -a)) break;
  }
  return sum;
}

// The sum of (p)_n (q)_n / n! x^-n up to its smallest term; NaN where that is too large.
double asymptotic_sum(double p, double q, double x) {
  double term = 1, sum = 1;
  for (double n = 0; n < 500; ++n) {
    const double next = term * ((p + n) * (q + n) / ((n + 1) * x));
    if (abs(next) < 1e-17 * abs(sum)) return sum + next;
    if (abs(next) >= abs(term) && n > 5 - p && n > 5 - q) break;
    term = next;
    sum += term;
  }
  return nan;
}

// The sum of (a)_n (b)_n / (c)_n z^n / n! (DLMF 15.2.1).
double gauss_series(double a, double b, double c, double z) {
  double term = 1, sum = 1;
  for (double n = 0; n < 500000; ++n) {
    term *= (a + n) / (c + n) * ((b + n) * z / (n + 1));
    sum += term;
    if (term == 0 || (abs(term) < 1e-17 * abs(sum) && n > -a && n > -b && n > -c)) break;
  }
  return sum;
}

}  // namespace

double hyp1f1(double a, double b, double x) {
  if (is_nan(a + b + x)) return nan;
  if (x == 0 || a == 0) return 1;
  if (is_pole_of_gamma(b) && !(is_pole_of_gamma(a) && a > b)) return infinity;
  if (a == b) return exp(x);
  if (is_pole_of_gamma(a)) return kummer_series(a, b, x);
  if (x > 50) {  // DLMF 13.7.2
    const double sum = asymptotic_sum(1 - a, b - a, x);
    if (!is_nan(sum)) return gamma_ratio(b, 1, a, 1) * sum * exp(x + (a - b) * log(x));
  }
  if (x < -50) {
    const double sum = asymptotic_sum(a, 1 + a - b, -x);
    if (!is_nan(sum) && !is_pole_of_gamma(b - a))
      return gamma_ratio(b, 1, b - a, 1) * sum * exp(-a * log(-x));
  }
  if (x < 0 && (x < -1 || b > a)) return exp(x) * kummer_series(b - a, b, -x);
  return kummer_series(a, b, x);
}

double hyp2f1(double a, double b, double c, double z) {
  if (is_nan(a + b + c + z)) return nan;
  if (z == 0 || a == 0 || b == 0) return 1;
  const bool ends = is_pole_of_gamma(a) || is_pole_of_gamma(b);
  if (is_pole_of_gamma(c) && !((is_pole_of_gamma(a) && a > c) || (is_pole_of_gamma(b) && b > c)))
    return infinity;
  if (ends && !(z < 0)) return gauss_series(a, b, c, z);
  if (z > 1) return nan;
  const double excess = c - a - b;
  if (z == 1) return excess > 0 ? gamma_ratio(c, excess, c - a, c - b) : infinity;
  if (z < 0) {  // DLMF 15.8.1, with the smaller power
    if (abs(a) > abs(b)) return hyp2f1(b, a, c, z);
    if (is_pole_of_gamma(b)) return gauss_series(a, b, c, z);
    const double w = z / (z - 1), other = c - b;
    if (is_pole_of_gamma(c)) return gauss_series(a, b, c, z);
    return exp(-a * log1p(-z)) * (w < 1 ? hyp2f1(a, other, c, w) : infinity);
  }
  if (z > 0.9 && abs(excess - round(excess)) > 1e-3 && excess < 50) {  // DLMF 15.8.4
    const double y = 1 - z;
    const double first = gamma_ratio(c, excess, c - a, c - b) * gauss_series(a, b, 1 - excess, y);
    const double second = gamma_ratio(c, -excess, a, b) * gauss_series(c - a, c - b, 1 + excess, y);
    return first + exp(excess * log(y)) * second;
  }
  return gauss_series(a, b, c, z);
}

}  // namespace plait::math
