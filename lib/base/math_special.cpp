// Zeta and polygamma functions, Bessel functions, error functions and integrals.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/math.h>
#include <plait/base/math/special.h>

#include <array>

namespace plait::math {
namespace {

// A sum of Chebyshev polynomials T_k(t), by Clenshaw's recurrence.
template <std::size_t n>
double chebyshev(double t, const std::array<double, n>& c) {
  double next = 0, after = 0;
  for (std::size_t k = n - 1; k > 0; --k) {
    const double sum = fma(2 * t, next, c[k]) - after;
    after = next, next = sum;
  }
  return fma(t, next, c[0]) - after;
}

// exp(-x) I_0(x) and exp(-x) I_1(x) / x on [0, 8]; sqrt(x) times exp(-x) I(x) in 8 / x beyond.
constexpr std::array i0_near{
    0.33839763720473803,    -0.3046826723431984,     0.17162090152220877,    -0.09490109704804764,
    0.04930528423967071,    -0.02373741480589947,    0.010546460394594998,   -0.004324309995050576,
    0.0016394756169413357,  -0.0005763755745385824,  0.00018850288509584165, -5.754195010082104e-05,
    1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06, -2.670793853940612e-07,
    6.046995022541919e-08,  -1.300025009986248e-08,  2.6598237246823866e-09, -5.189795601635263e-10,
    9.675809035373237e-11,  -1.726826291441556e-11,  2.95505266312964e-12,   -4.856446783111929e-13,
    7.676185498604936e-14,  -1.1685332877993451e-14, 1.715391285555133e-15,  -2.431279846547955e-16,
    3.3307945188222384e-17, -4.4153416464793395e-18};
constexpr std::array i0_far{
    0.4022452055070544,      0.0033691164782556943,   6.889758346916825e-05,
    2.8913705208347567e-06,  2.0489185894690638e-07,  2.266668990498178e-08,
    3.3962320257083865e-09,  4.94060238822497e-10,    1.1889147107846439e-11,
    -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12,
    7.180124451383666e-13,   3.8527783827421426e-13,  1.54008621752141e-14,
    -4.150569347287222e-14,  -9.554846698828307e-15,  3.8116806693526224e-15,
    1.7725601330565263e-15,  -3.425485619677219e-16,  -2.827623980516583e-16,
    3.4612228676974575e-17,  4.465621420296758e-17,   -4.830504485944022e-18,
    -7.23318048787497e-18,   9.921475412171813e-19,   1.1936508908470843e-18};
constexpr std::array i1_near{
    0.12629359322181682,     -0.17641651835783406,    0.1026436586898471,
    -0.05294598120809499,    0.024726449030626516,    -0.010564084894626197,
    0.004156422944312888,    -0.0015135724506312532,  0.0005122859561685758,
    -0.00016176081582589674, 4.781565107550054e-05,   -1.3273163656039436e-05,
    3.4702513081376785e-06,  -8.568720264695455e-07,  2.0032947535521353e-07,
    -4.445059128796328e-08,  9.381537386495773e-09,   -1.8872497517228294e-09,
    3.625590281552117e-10,   -6.663489723502027e-11,  1.1736186298890901e-11,
    -1.9839743977649436e-12, 3.223793365945575e-13,   -5.042185504727912e-14,
    7.600684294735408e-15,   -1.1055969477353862e-15, 1.5536319577362005e-16,
    -2.111421214358166e-17,  2.7779141127610464e-18};
constexpr std::array i1_far{
    0.38928811750914005,     -0.009761097491361469,   -0.00011058893876262371,
    -3.882564808877691e-06,  -2.512236237870209e-07,  -2.6314688468895196e-08,
    -3.835380385964237e-09,  -5.589743462196584e-10,  -1.8974958123505413e-11,
    3.2526035830154884e-11,  1.4125807436613782e-11,  2.0356285441470896e-12,
    -7.198551776245908e-13,  -4.0835511110921974e-13, -2.1015418427726643e-14,
    4.272440016711951e-14,   1.0420276984128802e-14,  -3.8144030724370075e-15,
    -1.8803547755107825e-15, 3.3082023109209285e-16,  2.96262899764595e-16,
    -3.20952592199342e-17,   -4.650305368489357e-17,  4.414348323071546e-18,
    7.517296310842329e-18,   -9.314178867325076e-19,  -1.2421932751960055e-18};
// (1 + 2 x) erfcx(x) in (x - 3.75) / (x + 3.75) (Shepherd and Laframboise, 1981).
constexpr std::array erfcx_terms{
    1.1775789345674017,     -0.004590054580646478,   -0.08424913336651792,
    0.05920993999819189,    -0.026658668435305753,   0.009074997670705265,
    -0.002413163540417608,  0.0004907758365258086,   -6.916973302501207e-05,
    4.13902798607301e-06,   7.74038306619849e-07,    -2.1886401049234397e-07,
    1.076499946567091e-08,  4.521959811218287e-09,   -7.754400208831351e-10,
    -6.318088340886684e-11, 2.86879501093067e-11,    1.9455868545777347e-13,
    -9.65469674843344e-13,  3.25254814814874e-14,    3.3478119482868056e-14,
    -1.864562880419313e-15, -1.2507950530688648e-15, 7.418235256624044e-17,
    5.068148904796111e-17,  -2.2370566594359995e-18, -2.187342944303018e-18};

// B_2k / (2k)! and B_2k / (2k + 1)!, k from 1.
constexpr std::array bernoulli_over_factorial{
    0.08333333333333333,   -0.001388888888888889,  3.306878306878307e-05,  -8.267195767195768e-07,
    2.08767569878681e-08,  -5.284190138687493e-10, 1.3382536530684679e-11, -3.3896802963225827e-13,
    8.586062056277845e-15, -2.174868698558062e-16, 5.5090028283602295e-18, -1.3954464685812522e-19,
    3.534707039629467e-21, -8.953517427037546e-23};
constexpr std::array dilogarithm_terms{
    0.027777777777777776,  -0.0002777777777777778,  4.72411186696901e-06,  -9.185773074661964e-08,
    1.8978869988971e-09,   -4.0647616451442256e-11, 8.921691020456452e-13, -1.9939295860721074e-14,
    4.518980029619918e-16, -1.0356517612181247e-17, 2.395218621026187e-19};

// E_1(x) and its like for x > 1: exp(-x) / (x + n - 1 n / (x + n + 2 - ...)) (DLMF 8.19.17).
double expn_by_fraction(double n, double x) {
  double b = x + n, d = 1 / b, c = 1e300, result = d;
  for (double i = 1; i < 1000; ++i) {
    const double numerator = -i * (n - 1 + i);
    b += 2;
    d = 1 / fma(numerator, d, b);
    c = b + numerator / c;
    const double factor = c * d;
    result *= factor;
    if (abs(factor - 1) < 1e-16) break;
  }
  return result * exp(-x);
}

// The series of DLMF 8.19.8 at x <= 1, whose term n - 1 has a logarithm.
double expn_by_series(double n, double x) {
  double sum = n == 1 ? -log(x) - euler : 1 / (n - 1), power = 1, psi = -euler;
  for (double i = 1; i < 40; ++i) {
    power *= -x / i;
    psi += 1 / i;  // digamma(i + 1)
    sum += i == n - 1 ? power * (psi - log(x)) : -power / (i - (n - 1));
  }
  return sum;
}

}  // namespace

// Euler and Maclaurin's formula (DLMF 25.11.5) after the first terms.
double zeta(double s, double q) {
  if (is_nan(s + q) || s < 1) return nan;
  if (s == 1) return infinity;
  if (q <= 0) {
    if (q == floor(q)) return q == -infinity ? nan : infinity;
    if (s != floor(s) || q < -1e6) return nan;
  }
  if (q == infinity) return 0;
  double sum = 0, w = q;
  const double enough = 10 + 0.5 * (s < 200 ? s : 200);
  for (; w < enough; w += 1) {
    const double term = pow(w, -s);
    sum += term;
    if (w > 1 && term <= 1e-18 * abs(sum)) return sum;
  }
  const double power = pow(w, -s), inverse = 1 / w;
  double tail = fma(w / (s - 1), power, 0.5 * power);
  double factor = s * inverse * power;
  for (std::size_t k = 0; k < bernoulli_over_factorial.size(); ++k) {
    const double term = factor * bernoulli_over_factorial[k];
    tail += term;
    if (abs(term) <= 1e-18 * abs(tail)) break;
    factor *= (s + 2.0 * k + 1) * inverse * ((s + 2.0 * k + 2) * inverse);
  }
  return sum + tail;
}

double polygamma(double m, double x) {
  if (m == 0) return digamma(x);
  if (!(m > 0) || m != floor(m)) return nan;
  double factorial = 1;
  for (double k = 2; k <= m && factorial < infinity; ++k) factorial *= k;
  const double sum = zeta(m + 1, x);
  const double size = factorial < infinity ? factorial * sum : exp(lgamma(m + 1) + log(sum));
  return rem(m, 2.0) == 0 ? -size : size;
}

double bessel_i0e(double x) {
  x = abs(x);
  return x <= 8 ? chebyshev(x / 4 - 1, i0_near) : chebyshev(16 / x - 1, i0_far) / sqrt(x);
}
double bessel_i1e(double x) {
  const double size = abs(x);
  if (size <= 8) return x * chebyshev(size / 4 - 1, i1_near);
  const double result = chebyshev(16 / size - 1, i1_far) / sqrt(size);
  return x < 0 ? -result : result;
}

double erfcx(double x) {
  if (!(x < 0)) {
    if (x == infinity) return 0;
    return chebyshev(x < 1e16 ? (x - 3.75) / (x + 3.75) : 1.0, erfcx_terms) / (1 + 2 * x);
  }
  const double square = x * x;
  if (square > 720) return infinity;
  return 2 * fma(exp(square), fma(x, x, -square), exp(square)) - erfcx(-x);
}

// erf_inv near the middle; in the tails Newton's method on the logarithm of the distribution.
double ndtri(double p) {
  if (!(p > 0 && p < 1)) return p == 0 ? -infinity : p == 1 ? infinity : nan;
  if (p > 0.5) return -ndtri(1 - p);
  constexpr double root_2 = 1.4142135623730951;
  if (p > 0.05) return root_2 * erf_inv(2 * (p - 0.5));
  const double logarithm = log(p);
  double z = sqrt(-2 * logarithm - log(-4 * pi * logarithm));
  for (int step = 0; step < 5; ++step) {
    const double scaled = erfcx(z / root_2);
    const double excess = fma(-0.5 * z, z, log(0.5 * scaled)) - logarithm;
    z += excess * scaled * 1.2533141373155003;  // sqrt(pi / 2)
  }
  return -z;
}

double expn(double n, double x) {
  if (!(x >= 0) || n != floor(n)) return nan;
  if (x == infinity) return 0;
  if (x == 0) return n <= 1 ? infinity : 1 / (n - 1);
  if (n <= 0) {  // x E_n = exp(-x) - n E_(n + 1) (DLMF 8.19.12), and E_0 = exp(-x) / x
    const double power = exp(-x);
    double result = power / x;
    for (double k = -1; k >= n && result < infinity; --k) result = fma(-k, result, power) / x;
    return result;
  }
  return x > 1 ? expn_by_fraction(n, x) : expn_by_series(n, x);
}

double expi(double x) {
  if (x < 0) return -expn(1, -x);
  if (x == 0) return -infinity;
  if (!(x < 710)) return x;
  if (x <= 40) {  // DLMF 6.6.2
    double power = 1, sum = 0;
    for (double n = 1; n < 200; ++n) {
      power *= x / n;
      sum += power / n;
      if (power < 1e-17 * sum) break;
    }
    return (log(x) + euler) + sum;
  }
  double term = 1, sum = 1;  // DLMF 6.12.2
  for (double n = 1; n < 40; ++n) {
    term *= n / x;
    sum += term;
  }
  return exp(x) / x * sum;
}

double spence(double x) {
  if (!(x >= 0)) return nan;
  if (x == 0) return pi * pi / 6;
  if (x == infinity) return -infinity;
  if (x < 0.5) return pi * pi / 6 - log(x) * log1p(-x) - spence(1 - x);
  const double u = -log(x);
  if (x > 2) return -0.5 * u * u - spence(1 / x);
  const double square = u * u;  // the dilogarithm of z in -log(1 - z)
  return fma(u * square, polynomial(square, dilogarithm_terms), fma(-0.25 * u, u, u));
}

}  // namespace plait::math
