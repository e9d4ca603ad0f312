// plait.scipy.special: error, gamma, beta and zeta functions, Bessel functions, integrals.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/lax.h>
#include <plait/functions/scipy.h>
#include <plait/primitives/special.h>

#include "functions/one_program.h"
#include "functions/scipy/special.h"

namespace plait {
using namespace functions;  // NOLINT

Arrays functions::floats(std::string_view function, std::initializer_list<Operand> operands) {
  Arrays all = promoted_inexact(function, operands);
  for (const Array& array : all) floating_only(function, array);
  return all;
}

namespace scipy {

// --- Error functions -----------------------------------------------------------------------------

Array special::erf(Operand x) { return lax::erf(floating_only("erf", x)); }
Array special::erfc(Operand x) { return lax::erfc(floating_only("erfc", x)); }
Array special::erfcx(Operand x) { return lax::erfcx(floating_only("erfcx", x)); }
Array special::erfinv(Operand x) { return lax::erf_inv(floating_only("erfinv", x)); }
Array special::ndtr(Operand x) { return lax::erfc(floating_only("ndtr", x) * -M_SQRT1_2) * 0.5; }
// Below -1 by erfcx, which takes out exp(-x^2 / 2).
Array special::log_ndtr(Operand x, int series_order) {
  if (series_order < 1)
    throw ValueError("log_ndtr: series_order is " + std::to_string(series_order),
                     "give at least 1; no series is used");
  const Array z = floating_only("log_ndtr", x);
  const Array is_low = z < -1;
  const Array low = numpy::where(is_low, z, -1), high = numpy::where(is_low, -1, z);
  const Array tail = lax::log(lax::erfcx(low * -M_SQRT1_2) * 0.5) - low * low * 0.5;
  const Array body = lax::log1p(lax::erfc(high * M_SQRT1_2) * -0.5);
  return numpy::where(is_low, tail, body);
}
Array special::ndtri(Operand p) { return lax::ndtri(floating_only("ndtri", p)); }

// --- Logarithms ----------------------------------------------------------------------------------

Array special::expit(Operand x) { return lax::logistic(floating_only("expit", x)); }
Array special::logit(Operand x) {
  const Array p = floating_only("logit", x);
  return lax::sub(lax::log(p), lax::log1p(lax::neg(p)));
}
// 0 for x = 0, where the logarithm is that of 1 if y has no finite one.
Array special::xlogy(Operand x, Operand y) {
  const Arrays all = floats("xlogy", {x, y});
  const Array has_none = (all[1] <= 0) | numpy::isinf(all[1]);
  return all[0] * lax::log(numpy::where(numpy::equal(all[0], 0) & has_none, 1, all[1]));
}
Array special::xlog1py(Operand x, Operand y) {
  const Arrays all = floats("xlog1py", {x, y});
  const Array has_none = (all[1] <= -1) | numpy::isinf(all[1]);
  return all[0] * lax::log1p(numpy::where(numpy::equal(all[0], 0) & has_none, 0, all[1]));
}
Array special::entr(Operand x) {
  const Array p = floating_only("entr", x);
  const Array inside = numpy::where(p < 0, 1, p);
  return numpy::where(p < 0, -INFINITY, -xlogy(inside, inside));
}
Array special::rel_entr(Operand p, Operand q) {
  const Arrays all = floats("rel_entr", {p, q});
  const Array both = (all[0] > 0) & (all[1] > 0);
  const Array is_zero = numpy::equal(all[0], 0) & (all[1] >= 0);
  const Array is_nan = numpy::isnan(all[0]) | numpy::isnan(all[1]);
  const Array first = numpy::where(both, all[0], 1), second = numpy::where(both, all[1], 1);
  const Array elsewhere = numpy::where(is_nan, NAN, numpy::where(is_zero, 0, INFINITY));
  return numpy::where(both, first * lax::log(first / second), elsewhere);
}
Array special::kl_div(Operand p, Operand q) {
  const Arrays all = floats("kl_div", {p, q});
  return rel_entr(all[0], all[1]) - all[0] + all[1];
}
// (x^lmbda - 1) / lmbda, whose limit at 0 is log x.
namespace {
Array power_transformed(const Array& logarithm, const Array& lmbda) {
  const Array is_zero = numpy::equal(lmbda, 0);
  const Array divisor = numpy::where(is_zero, 1, lmbda);
  return numpy::where(is_zero, logarithm, lax::expm1(divisor * logarithm) / divisor);
}
}  // namespace
Array special::boxcox(Operand x, Operand lmbda) {
  const Arrays all = floats("boxcox", {x, lmbda});
  return power_transformed(lax::log(all[0]), all[1]);
}
Array special::boxcox1p(Operand x, Operand lmbda) {
  const Arrays all = floats("boxcox1p", {x, lmbda});
  return power_transformed(lax::log1p(all[0]), all[1]);
}

// --- Gamma functions -----------------------------------------------------------------------------

// SciPy's is -inf at -inf, where C's and XLA's lgamma are inf.
Array special::gammaln(Operand x) {
  return in_one_program("gammaln", Arrays{floating_only("gammaln", x)},
                        [](std::span<const Array> y) {
                          const Array is_end = lax::eq(y[0], filled(-INFINITY, y[0]));
                          return Arrays{lax::select(is_end, y[0], lax::lgamma(y[0]))};
                        });
}
Array special::loggamma(Operand x) {
  const Array a = floating_only("loggamma", x);
  return numpy::where(a < 0, NAN, lax::lgamma(a));
}
// -1 where floor(x) is odd; NaN at negative integers.
Array special::gammasgn(Operand x) {
  const Array a = floating_only("gammasgn", x);
  const Array below = lax::floor(a), half = below * 0.5;
  const Array is_odd = numpy::not_equal(half, lax::floor(half));
  const Array left = numpy::where(numpy::equal(a, below), NAN, numpy::where(is_odd, -1, 1));
  const Array sign = numpy::where(a < 0, left, numpy::copysign(filled(1, a), a));
  return astype(numpy::where(numpy::isnan(a), NAN, sign), a.dtype());
}
Array special::gamma(Operand x) {
  const Array a = floating_only("gamma", x);
  return gammasgn(a) * lax::exp(lax::lgamma(a));
}
Array special::digamma(Operand x) { return lax::digamma(floating_only("digamma", x)); }
Array special::polygamma(Operand n, Operand x) {
  const Arrays all = floats("polygamma", {n, x});
  return lax::polygamma(all[0], all[1]);
}
Array special::zeta(Operand x, const std::optional<Array>& q) {
  const Arrays all = floats("zeta", {x, q ? Operand(*q) : Operand(1)});
  return lax::zeta(all[0], all[1]);
}
Array special::gammainc(Operand a, Operand x) {
  const Arrays all = floats("gammainc", {a, x});
  return lax::igamma(all[0], all[1]);
}
Array special::gammaincc(Operand a, Operand x) {
  const Arrays all = floats("gammaincc", {a, x});
  return lax::igammac(all[0], all[1]);
}
Array special::multigammaln(Operand a, int d) {
  const Array x = floating_only("multigammaln", a);
  if (d < 1)
    throw ValueError("multigammaln: the dimension d is " + std::to_string(d), "give at least 1");
  Array sum = filled(0.25 * d * (d - 1) * std::log(M_PI), x);
  for (int k = 0; k < d; ++k) sum = sum + lax::lgamma(x - 0.5 * k);
  return sum;
}
Array special::factorial(Operand n, bool exact) {
  if (exact)
    throw ValueError("factorial: exact=True needs integers of any size",
                     "use math.factorial, or exact=False");
  const Array x = floating_only("factorial", n);
  return numpy::where(x < 0, 0, lax::exp(lax::lgamma(numpy::where(x < 0, 0, x) + 1)));
}
Array special::poch(Operand z, Operand m) {
  const Arrays all = floats("poch", {z, m});
  const Array end = all[0] + all[1];
  const Array sign = gammasgn(all[0]) * gammasgn(end);
  return numpy::where(numpy::equal(all[1], 0), 1,
                      sign * lax::exp(lax::lgamma(end) - lax::lgamma(all[0])));
}
Array special::comb(Operand N, Operand k, bool repetition) {
  const Arrays all = floats("comb", {N, k});
  const Array &chosen = all[1], count = repetition ? all[0] + chosen - 1 : all[0];
  const Array none = numpy::equal(chosen, 0);
  const Array is_one = repetition ? numpy::equal(all[0], 0) & none : none & (all[0] >= 0);
  const Array inside = (chosen >= 0) & (count >= chosen);
  const Array n = numpy::where(inside, count, 1), j = numpy::where(inside, chosen, 0);
  const Array logarithm = lax::lgamma(n + 1) - lax::lgamma(j + 1) - lax::lgamma(n - j + 1);
  return numpy::where(is_one, 1, numpy::where(inside, lax::exp(logarithm), 0));
}

// --- Beta functions ------------------------------------------------------------------------------

Array special::betaln(Operand a, Operand b) {
  const Arrays all = floats("betaln", {a, b});
  return lax::lgamma(all[0]) + lax::lgamma(all[1]) - lax::lgamma(all[0] + all[1]);
}
Array special::beta(Operand a, Operand b) {
  const Arrays all = floats("beta", {a, b});
  const Array sign = gammasgn(all[0]) * gammasgn(all[1]) * gammasgn(all[0] + all[1]);
  return sign * lax::exp(betaln(all[0], all[1]));
}
Array special::betainc(Operand a, Operand b, Operand x) {
  const Arrays all = floats("betainc", {a, b, x});
  return lax::betainc(all[0], all[1], all[2]);
}

// --- Bessel functions and integrals --------------------------------------------------------------

Array special::i0e(Operand x) { return lax::bessel_i0e(floating_only("i0e", x)); }
Array special::i1e(Operand x) { return lax::bessel_i1e(floating_only("i1e", x)); }
namespace {

// I_n(x) for n of 0 or 1. About 0, where exp(|x|) has a kink, its power series, whose derivatives
// of every order are those of I_n: (x / 2)^n sum_k (x^2 / 4)^k / (k! (k + n)!).
Array modified_bessel(int n, const Array& x, Array (*scaled)(Operand)) {
  constexpr int terms = 11;  // below 1e-17 from there on
  const Array is_near = lax::lt(lax::abs(x), constant(1, x));
  const Array near = lax::select(is_near, x, lax::zeros_like(x.aval()));
  const Array far = lax::select(is_near, filled(1, x), x);
  const Array quarter = near * near * 0.25;
  Array sum = filled(1, x);  // Horner's rule, by the ratios of terms
  for (int k = terms; k > 0; --k) sum = sum * quarter * (1.0 / (k * (k + n))) + 1.0;
  return lax::select(is_near, n == 0 ? sum : sum * near * 0.5,
                     lax::exp(lax::abs(far)) * scaled(far));
}

}  // namespace

Array special::i0(Operand x) {
  return modified_bessel(0, floating_only("i0", x), &lax::bessel_i0e);
}
Array special::i1(Operand x) {
  return modified_bessel(1, floating_only("i1", x), &lax::bessel_i1e);
}
// J_0 to J_v by Miller's algorithm: ratios J_n / J_(n - 1) = x / (2 n - x J_(n + 1) / J_n)
// backwards from n_iter, and J_0 + 2 (J_2 + J_4 + ...) = 1.
Array special::bessel_jn(Operand z, int v, int n_iter) {
  const Array x = floating_only("bessel_jn", z);
  if (v < 0 || n_iter <= v)
    throw ValueError(
        "bessel_jn: order v = " + std::to_string(v) + " and n_iter = " + std::to_string(n_iter),
        "give 0 <= v < n_iter");
  Arrays ratios(std::size_t(n_iter) + 1, filled(0, x));
  for (int n = n_iter; n > 0; --n) {
    const Array& above = n == n_iter ? ratios[0] : ratios[std::size_t(n) + 1];
    ratios[std::size_t(n)] = x / (2.0 * n - x * above);
  }
  const Array one = filled(1, x);
  Array relative = one, sum = one;  // J_n / J_0
  Arrays orders{one};
  for (int n = 1; n <= n_iter; ++n) {
    relative = relative * ratios[std::size_t(n)];
    if (n % 2 == 0) sum = sum + relative * 2;
    if (n <= v) orders.push_back(relative);
  }
  for (Array& order : orders) order = order / sum;
  return numpy::stack(orders, 0);
}
Array special::expi(Operand x) { return lax::expi(floating_only("expi", x)); }
Array special::expn(Operand n, Operand x) {
  const Arrays all = floats("expn", {n, x});
  return lax::expn(all[0], all[1]);
}
Array special::exp1(Operand x) { return expn(1, x); }
Array special::spence(Operand x) { return lax::spence(floating_only("spence", x)); }

Array special::dawsn(Operand x) { return lax::dawsn(floating_only("dawsn", x)); }
std::pair<Array, Array> special::fresnel(Operand x) {
  const Array z = floating_only("fresnel", x);
  return {lax::fresnel_sine(z), lax::fresnel_cosine(z)};
}
std::pair<Array, Array> special::sici(Operand x) {
  const Array z = floating_only("sici", x);
  return {lax::sine_integral(z), lax::cosine_integral(z)};
}
Array special::owens_t(Operand h, Operand a) {
  const Arrays all = floats("owens_t", {h, a});
  return lax::owens_t(all[0], all[1]);
}
Array special::hyp1f1(Operand a, Operand b, Operand x) {
  const Arrays all = floats("hyp1f1", {a, b, x});
  return lax::hyp1f1(all[0], all[1], all[2]);
}
Array special::hyp2f1(Operand a, Operand b, Operand c, Operand x) {
  const Arrays all = floats("hyp2f1", {a, b, c, x});
  return lax::hyp2f1(all[0], all[1], all[2], all[3]);
}

// B_n = -n zeta(1 - n): by Euler's formula 2 n! zeta(n) / (2 pi)^n for even n.
Array special::bernoulli(int n) {
  if (n < 0) throw ValueError("bernoulli: n is " + std::to_string(n), "give at least 0");
  Arrays numbers;
  for (int k = 0; k <= n; ++k) {
    double value = k == 0 ? 1 : k == 1 ? -0.5 : 0;
    if (k >= 2 && k % 2 == 0) {
      double sum = 1;
      for (int j = 2; j < 10000 && std::pow(j, -k) > 1e-17; ++j) sum += std::pow(j, -k);
      if (k == 2) sum = M_PI * M_PI / 6;
      value = (k % 4 == 2 ? 2 : -2) * sum;
      for (int j = 1; j <= k; ++j) value *= j / (2 * M_PI);
    }
    numbers.push_back(Array::literal(value, default_float()));
  }
  return numpy::stack(numbers, 0);
}

}  // namespace scipy
}  // namespace plait
