// The regularized incomplete gamma functions and their derivatives in the first argument.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/math.h>
#include <plait/base/math/special.h>

#include <array>

namespace plait::math {

double reciprocal_gamma(double a) {
  return a < 0.5 ? a * exp(-lgamma_above_one(a)) : exp(-lgamma(a));
}

// With r = u / (2 + u), log(1 + u) = 2 artanh(r).
double log_minus(double whole, double u) {
  if (!(abs(u) < 0.4)) return log(whole) - u;
  const double r = u / (2 + u), square = r * r;
  double sum = 1.0 / 23;
  for (int k = 21; k >= 3; k -= 2) sum = fma(sum, square, 1.0 / k);
  return fma(-r, u, 2 * r * square * sum);
}

namespace {

// A number and its derivative in a.
struct Slope {
  double value, slope;
};
Slope operator+(Slope x, Slope y) { return {x.value + y.value, x.slope + y.slope}; }
Slope operator*(Slope x, Slope y) {
  return {x.value * y.value, fma(x.slope, y.value, x.value * y.slope)};
}
Slope reciprocal(Slope x) {
  const double inverse = 1 / x.value;
  return {inverse, -x.slope * inverse * inverse};
}

// P and Q, and the slope dP/da as a multiple of the density D = x^a exp(-x) / Gamma(a).
struct Incomplete {
  double lower, upper, relative_slope, density;
};

double density(double a, double x) {
  if (a < 8) {
    if (x < 700 || a * log(x) > 700) return pow(x, a) * exp(-x) * reciprocal_gamma(a);
    return exp(a * log(x) - x) * reciprocal_gamma(a);
  }
  const double exponent = a * log_minus(x / a, (x - a) / a);
  return sqrt(a / (2 * pi)) * exp(exponent - stirling_remainder(a));
}

// P = D / a sum of x^n / ((a + 1) ... (a + n)) (DLMF 8.7.1).
Incomplete by_series(double a, double x) {
  Slope term{1, 0}, sum{1, 0};
  for (double n = 1; n < 10000; ++n) {
    term = term * reciprocal({a + n, 1}) * Slope{x, 0};
    sum = sum + term;
    if (term.value < 1e-17 * sum.value && abs(term.slope) <= 1e-17 * abs(sum.slope)) break;
  }
  const double factor = density(a, x), lower = factor * sum.value / a;
  const double logarithm = log(x) - digamma(a + 1);
  double upper = 1 - lower;
  if (x <= 1.1 && lower > 0.5 && a < 1.5) {
    // Q = 1 - x^a / Gamma(1 + a) (1 + a sum of (-x)^n / (n! (a + n))), n >= 1 (DLMF 8.7.3).
    const double exponent = fma(a, log(x), -lgamma_above_one(a));
    double power = 1, tail = 0;
    for (int n = 1; n < 30; ++n) power *= -x / n, tail += power / (a + n);
    upper = -expm1(exponent) - exp(exponent) * a * tail;
  }
  return {lower, upper, fma(logarithm, sum.value, sum.slope) / a, factor};
}

// Q = D / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)) (DLMF 8.9.2), by Lentz's algorithm.
Incomplete by_fraction(double a, double x) {
  Slope b{x + 1 - a, -1}, d = reciprocal(b), result = d, c{1e300, 0};
  for (double n = 1; n < 10000; ++n) {
    const Slope numerator{n * (a - n), n};
    b.value += 2;
    d = reciprocal(numerator * d + b);
    c = b + numerator * reciprocal(c);
    const Slope factor = c * d;
    result = result * factor;
    if (abs(factor.value - 1) < 1e-16 &&
        abs(result.value * factor.slope) <= 1e-16 * abs(result.slope))
      break;
  }
  const double factor = density(a, x), upper = factor * result.value;
  return {1 - upper, upper, -fma(log(x) - digamma(a), result.value, result.slope), factor};
}

// Coefficients of eta^n a^-k in Temme's expansion (DLMF 8.12.7 to 8.12.11).
constexpr double temme[8][17] = {
    {-0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073,
     0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06,
     -1.85406221071516e-06, 8.296711340953087e-07, -1.7665952736826078e-07, 6.707853543401498e-09,
     1.0261809784240309e-08, -4.382036018453353e-09, 9.14769958223679e-10, -2.5514193994946248e-11,
     -5.830772132550426e-11},
    {-0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596,
     0.00020576131687242798, -4.018775720164609e-07, -1.8098550334489977e-05, 7.64916091608111e-06,
     -1.6120900894563446e-06, 4.647127802807434e-09, 1.378633446915721e-07, -5.752545603517705e-08,
     1.1951628599778148e-08, -1.7543241719747647e-11, -1.0091543710600413e-09},
    {0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049, 2.0093878600823047e-06,
     -0.0001073665322636516, 5.2923448829120125e-05, -1.2760635188618728e-05, 3.423578734096138e-08,
     1.3721957309062934e-06, -6.298992138380055e-07, 1.4280614206064242e-07,
     -2.0477098421990866e-10, -1.409252991086752e-08},
    {0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557, 0.00026772063206283885,
     -7.561801671883977e-05, -2.396505113867297e-07, 1.1082654115347302e-05,
     -5.6749528269915965e-06, 1.4230900732435883e-06},
    {-0.0008618882909167117, 0.0007840392217200666, -0.0002990724803031902, -1.4638452578843418e-06,
     6.641498215465122e-05, -3.968365047179435e-05, 1.1375726970678419e-05},
    {-0.00033679855336635813, -6.972813758365857e-05, 0.0002772753244959392,
     -0.00019932570516188847, 6.797780477937208e-05},
    {0.0005313079364639922, -0.0005921664373536939},
    {0.00034436760689237765}};

// Temme's uniform expansion for large a and x near a: with eta^2 / 2 = mu - log(1 + mu),
// Q = erfc(eta sqrt(a / 2)) / 2 + exp(-a eta^2 / 2) / sqrt(2 pi a) S(eta, a).
Incomplete by_expansion(double a, double x) {
  const double mu = (x - a) / a, half_square = -log_minus(x / a, mu);
  const double eta = mu < 0 ? -sqrt(2 * half_square) : sqrt(2 * half_square);
  double sum = 0, in_eta = 0, in_inverse = 0;  // S and its derivatives in eta and 1/a
  const double inverse = 1 / a;
  for (int k = 7; k >= 0; --k) {
    double value = 0, slope = 0;
    for (int n = 16; n >= 0; --n)
      slope = fma(slope, eta, value), value = fma(value, eta, temme[k][n]);
    in_inverse = fma(in_inverse, inverse, sum);
    sum = fma(sum, inverse, value);
    in_eta = fma(in_eta, inverse, slope);
  }
  const double root = sqrt(a / 2), z = eta * root, scale = 1 / sqrt(2 * pi * a);
  const double factor = exp(-a * half_square);
  const double tail = factor * (0.5 * erfcx(abs(z)) + (z < 0 ? -scale : scale) * sum);
  // d eta/da = -mu / (a eta) and d(a eta^2 / 2)/da = -log(1 + mu).
  const double eta_slope = abs(eta) < 1e-8 ? -inverse : -mu / (a * eta);
  const double z_slope = fma(eta_slope, root, eta / (4 * root));
  const double sum_slope = fma(in_eta, eta_slope, -in_inverse * inverse * inverse);
  const double upper_slope =
      -z_slope / sqrt(pi) + scale * fma(sum, log1p(mu) - 0.5 * inverse, sum_slope);
  // D = factor sqrt(a / (2 pi)) / Gamma*(a)
  const double density_factor = a * scale * exp(-stirling_remainder(a));
  const double other = 1 - tail;
  return {z < 0 ? tail : other, z < 0 ? other : tail, -upper_slope / density_factor,
          factor * density_factor};
}

// Where a and x are finite and positive.
Incomplete incomplete_gamma(double a, double x) {
  if (a >= 200 && abs(x - a) < 0.3 * a) return by_expansion(a, x);
  return x <= 1 || x <= a ? by_series(a, x) : by_fraction(a, x);
}

// The value of P where a or x is NaN, negative, 0 or infinite.
bool is_ordinary(double a, double x) { return a > 0 && x > 0 && a < infinity && x < infinity; }
double limit(double a, double x) {
  if (is_nan(a + x) || a < 0 || x < 0 || (a == 0 && x == 0) || (a == infinity && x == infinity))
    return nan;
  return a == 0 || x == infinity ? 1 : 0;
}

}  // namespace

double igamma(double a, double x) {
  return is_ordinary(a, x) ? incomplete_gamma(a, x).lower : limit(a, x);
}
double igammac(double a, double x) {
  return is_ordinary(a, x) ? incomplete_gamma(a, x).upper : 1 - limit(a, x);
}
double igamma_grad_a(double a, double x) {
  if (!is_ordinary(a, x)) return limit(a, x) * 0;
  const Incomplete all = incomplete_gamma(a, x);
  return all.density == 0 ? 0 : all.relative_slope * all.density;
}
double random_gamma_grad(double a, double x) {
  return is_ordinary(a, x) ? -x * incomplete_gamma(a, x).relative_slope : limit(a, x) * 0;
}

}  // namespace plait::math
