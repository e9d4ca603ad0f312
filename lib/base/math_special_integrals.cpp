// Integrals: Dawson's, Fresnel's, of sine and cosine, Owen's.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/math.h>
#include <plait/base/math/special.h>

#include <array>

namespace plait::math {
namespace {

struct Complex {
  double re, im;
};
Complex product_of(Complex x, Complex y) {
  return {fma(x.re, y.re, -(x.im * y.im)), fma(x.re, y.im, x.im * y.re)};
}
Complex reciprocal_of(Complex x) {
  const double size = fma(x.re, x.re, x.im * x.im);
  return {x.re / size, -x.im / size};
}

// 1 / (b + a_1 / (b + 2 s + a_2 / (b + 4 s + ...))), by Lentz's algorithm, where the step is s =
// (2, 0) or (4, 0) and a_n is given.
template <class Numerator>
Complex fraction_of(Complex b, double step, Numerator numerator) {
  Complex d = reciprocal_of(b), result = d, c{1e300, 0};
  for (double n = 1; n < 1000; ++n) {
    const double a = numerator(n);
    b.re += step;
    d = reciprocal_of({fma(a, d.re, b.re), fma(a, d.im, b.im)});
    const Complex inverse = reciprocal_of(c);
    c = {fma(a, inverse.re, b.re), fma(a, inverse.im, b.im)};
    const Complex factor = product_of(c, d);
    result = product_of(result, factor);
    if (abs(factor.re - 1) + abs(factor.im) < 2e-16) break;
  }
  return result;
}

// The power series of C and S, as a pair (DLMF 7.6.4, 7.6.6).
Complex fresnel_series(double x) {
  const double t = 0.5 * pi * x * x;
  double term = x, cosine = x, sine = 0;
  for (double n = 1; n < 60; ++n) {
    term *= t / n;
    const double part = term / (2 * n + 1);
    const int turn = int(n) % 4;
    if (turn == 0) cosine += part;
    if (turn == 1) sine += part;
    if (turn == 2) cosine -= part;
    if (turn == 3) sine -= part;
    if (abs(part) < 1e-18 * abs(x)) break;
  }
  return {cosine, sine};
}

// C(x) + i S(x) = (1 + i) / 2 erf(sqrt(pi) (1 - i) x / 2), whose complement has a continued
// fraction (DLMF 7.9.1), with sines of pi x^2 / 2 from an exact x^2 modulo 4.
Complex fresnel(double x) {
  const double size = abs(x);
  if (size == infinity) return {0.5, 0.5};
  if (!(size > 1.6)) return fresnel_series(size);
  if (size > 3e7) return {0.5, 0.5};
  const double square = size * size, low = fma(size, size, -square);
  const double angle = 0.5 * pi * (rem(square, 4.0) + low);
  const Complex fraction =
      fraction_of({1, -pi * square}, 4, [](double n) { return -(2 * n - 1) * (2 * n); });
  const Complex scaled = product_of(fraction, {size, -size});
  const Complex wave = product_of({cos(angle), sin(angle)}, scaled);
  return product_of({0.5, 0.5}, {1 - wave.re, -wave.im});
}

// -Ci(x) + i (Si(x) - pi / 2) = E_1(ix), by its continued fraction (DLMF 6.9.1) for x > 3.
Complex integral_of_wave(double x) {
  const Complex fraction = fraction_of({1, x}, 2, [](double n) { return -n * n; });
  return product_of({cos(x), -sin(x)}, fraction);
}

// Nodes and weights of Gauss and Legendre's rule of 40 points, of which these are half.
constexpr std::array nodes{
    0.9982377097105593, 0.990726238699457,  0.9772599499837743,  0.9579168192137917,
    0.9328128082786765, 0.9020988069688743, 0.8659595032122595,  0.8246122308333117,
    0.7783056514265194, 0.7273182551899271, 0.6719566846141796,  0.6125538896679802,
    0.5494671250951282, 0.4830758016861787, 0.413779204371605,   0.3419940908257585,
    0.2681521850072537, 0.1926975807013711, 0.11608407067525521, 0.03877241750605082};
constexpr std::array weights{
    0.004521277098533191, 0.010498284531152813, 0.01642105838190789,  0.02224584919416696,
    0.0279370069800234,   0.033460195282547844, 0.038782167974472016, 0.04387090818567327,
    0.04869580763507223,  0.05322784698393682,  0.05743976909939155,  0.06130624249292894,
    0.06480401345660104,  0.0679120458152339,   0.07061164739128678,  0.07288658239580406,
    0.07472316905796826,  0.07611036190062624,  0.07703981816424797,  0.0775059479784248};

// The integral of exp(-h^2 (1 + x^2) / 2) / (2 pi (1 + x^2)) from 0 to a, for 0 <= a <= 1 and h >=
// 0.
double owens_integral(double h, double a) {
  const double most = h > 9 ? 9 / h : 1, end = a < most ? a : most, half = 0.5 * h * h;
  double sum = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const double side : {-1.0, 1.0}) {
      const double x = 0.5 * end * (1 + side * nodes[i]), size = 1 + x * x;
      sum += weights[i] * exp(-half * size) / size;
    }
  return sum * end / (4 * pi);
}

}  // namespace

// exp(-x^2) times a series of positive terms, and the asymptotic one (DLMF 7.6.3, 7.12).
double dawsn(double x) {
  const double size = abs(x), square = x * x;
  if (size > 7) {
    if (size > 1e8) return 0.5 / x;
    double term = 1, sum = 1;
    for (double n = 1; n < 45; ++n) {
      term *= (2 * n - 1) / (2 * square);
      sum += term;
      if (term < 1e-17) break;
    }
    return sum * 0.5 / x;
  }
  double power = x, sum = x;
  for (double n = 1; n < 300; ++n) {
    power *= square / n;
    const double term = power / (2 * n + 1);
    sum += term;
    if (abs(term) < 1e-17 * abs(sum)) break;
  }
  return sum * exp(-square);
}

double fresnel_sine(double x) { return is_nan(x) ? x : x < 0 ? -fresnel(x).im : fresnel(x).im; }
double fresnel_cosine(double x) { return is_nan(x) ? x : x < 0 ? -fresnel(x).re : fresnel(x).re; }

double sine_integral(double x) {
  const double size = abs(x);
  if (size > 3) {
    const double value = size == infinity ? 0.5 * pi : 0.5 * pi + integral_of_wave(size).im;
    return x < 0 ? -value : value;
  }
  double power = x, sum = x;  // DLMF 6.6.5
  for (double n = 1; n < 40; ++n) {
    power *= -x * x / ((2 * n) * (2 * n + 1));
    sum += power / (2 * n + 1);
  }
  return sum;
}
double cosine_integral(double x) {
  const double size = abs(x);
  if (size == infinity) return 0;
  if (size > 3) return -integral_of_wave(size).re;
  double power = 1, sum = 0;  // DLMF 6.6.6
  for (double n = 1; n < 40; ++n) {
    power *= -x * x / ((2 * n - 1) * (2 * n));
    sum += power / (2 * n);
  }
  return (log(size) + euler) + sum;
}

// T(h, a) for a > 1 is that of (h a, 1 / a), reflected (Patefield and Tandy, 2000).
double owens_t(double h, double a) {
  if (is_nan(h + a)) return nan;
  h = abs(h);
  const double size = abs(a);
  double value = 0;
  if (size <= 1) {
    value = owens_integral(h, size);
  } else {
    constexpr double root_half = 0.7071067811865476;
    const double first = 0.5 * erfc(h * root_half);
    if (size == infinity || h == infinity) {
      value = 0.5 * first;
    } else {
      const double second = 0.5 * erfc(h * size * root_half);
      value = 0.5 * (first + second) - first * second - owens_integral(h * size, 1 / size);
    }
  }
  return a < 0 ? -value : value;
}

}  // namespace plait::math
