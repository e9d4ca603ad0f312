// The catalogue of plait.scipy.special; logsumexp and its like are in the neural networks' files.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/scipy.h>

#include "functions/functions.h"

namespace plait {
namespace {

namespace special = scipy::special;
[[maybe_unused]] const FunctionInfo* const special_functions[] = {
    function("scipy.special", "erf(x)", "The error function, of floats; integers are float32.",
             &special::erf),
    function("scipy.special", "erfc(x)", "1 - erf(x) of floats, exact where it is small.",
             &special::erfc),
    function("scipy.special", "erfcx(x)", "exp(x**2) * erfc(x), of floats.", &special::erfcx),
    function("scipy.special", "erfinv(x)",
             "The inverse of the error function, of floats between -1 and 1; NaN elsewhere.",
             &special::erfinv),
    function("scipy.special", "ndtr(x)",
             "The standard normal distribution function, of floats; exact far below 0 too.",
             &special::ndtr),
    function("scipy.special", "log_ndtr(x, series_order=3)",
             "The logarithm of ndtr(x), exact far below 0 too; series_order, of JAX's series, is "
             "not needed.",
             &special::log_ndtr),
    function("scipy.special", "ndtri(p)",
             "The inverse of ndtr, of floats between 0 and 1; NaN elsewhere.", &special::ndtri),
    function("scipy.special", "expit(x)", "The logistic function 1 / (1 + exp(-x)), of floats.",
             &special::expit),
    function("scipy.special", "logit(x)",
             "log(x / (1 - x)), the inverse of expit, of floats between 0 and 1; NaN elsewhere.",
             &special::logit),
    function("scipy.special", "xlogy(x, y)", "x * log(y), and 0 where x is 0; the two broadcast.",
             &special::xlogy),
    function("scipy.special", "xlog1py(x, y)",
             "x * log1p(y), and 0 where x is 0; the two broadcast.", &special::xlog1py),
    function("scipy.special", "entr(x)", "The entropy -x * log(x) of floats, 0 at 0; -inf below.",
             &special::entr),
    function(
        "scipy.special", "rel_entr(p, q)",
        "p * log(p / q), and 0 where p is 0; inf where that has no meaning. The two broadcast.",
        &special::rel_entr),
    function(
        "scipy.special", "kl_div(p, q)",
        "rel_entr(p, q) - p + q, the terms of the Kullback-Leibler divergence; the two broadcast.",
        &special::kl_div),
    function("scipy.special", "boxcox(x, lmbda)",
             "The transform of Box and Cox (x**lmbda - 1) / lmbda, which is log(x) for lmbda = 0.",
             &special::boxcox),
    function("scipy.special", "boxcox1p(x, lmbda)",
             "The transform of Box and Cox of 1 + x, exact near 0.", &special::boxcox1p),
    function("scipy.special", "gamma(x)",
             "The gamma function, of floats; NaN at negative integers.", &special::gamma),
    function("scipy.special", "gammaln(x)", "The logarithm of |gamma(x)|, of floats.",
             &special::gammaln),
    function("scipy.special", "loggamma(x)", "The logarithm of gamma(x) of floats; NaN below 0.",
             &special::loggamma),
    function("scipy.special", "gammasgn(x)",
             "The sign of gamma(x) as a float; NaN at negative integers.", &special::gammasgn),
    function("scipy.special", "digamma(x)", "The derivative of gammaln, of floats.",
             &special::digamma),
    function("scipy.special", "polygamma(n, x)",
             "The derivative of digamma of whole order n, at x; the two broadcast.",
             &special::polygamma),
    function("scipy.special", "zeta(x, q=None)",
             "Hurwitz's zeta function, the sum of (q + k)**-x over k >= 0, for x > 1; Riemann's "
             "without q.",
             &special::zeta),
    function("scipy.special", "gammainc(a, x)",
             "The regularized lower incomplete gamma function, differentiable in both; the two "
             "broadcast.",
             &special::gammainc),
    function("scipy.special", "gammaincc(a, x)",
             "The regularized upper incomplete gamma function 1 - gammainc(a, x), exact where it "
             "is small.",
             &special::gammaincc),
    function("scipy.special", "multigammaln(a, d)",
             "The logarithm of the gamma function of dimension d, at a.", &special::multigammaln),
    function("scipy.special", "factorial(n, exact=False)",
             "n! as gamma(n + 1), of floats; 0 below 0. exact=True is refused.",
             &special::factorial),
    function(
        "scipy.special", "comb(N, k, *, repetition=False)",
        "The number of ways to choose k of N, as floats; with repetition of elements on request.",
        &special::comb),
    function("scipy.special", "poch(z, m)",
             "Pochhammer's symbol gamma(z + m) / gamma(z); the two broadcast.", &special::poch),
    function("scipy.special", "beta(a, b)",
             "The beta function gamma(a) * gamma(b) / gamma(a + b); the two broadcast.",
             &special::beta),
    function("scipy.special", "betaln(a, b)", "The logarithm of |beta(a, b)|; the two broadcast.",
             &special::betaln),
    function("scipy.special", "betainc(a, b, x)",
             "The regularized incomplete beta function I_x(a, b), differentiable in x; the three "
             "broadcast.",
             &special::betainc),
    function("scipy.special", "i0(x)", "The modified Bessel function of order 0, of floats.",
             &special::i0),
    function("scipy.special", "i0e(x)",
             "The modified Bessel function of order 0 times exp(-|x|), of floats.", &special::i0e),
    function("scipy.special", "i1(x)", "The modified Bessel function of order 1, of floats.",
             &special::i1),
    function("scipy.special", "i1e(x)",
             "The modified Bessel function of order 1 times exp(-|x|), of floats.", &special::i1e),
    function("scipy.special", "bessel_jn(z, *, v, n_iter=50)",
             "The Bessel functions J_0 to J_v at z along a new first axis, by a recurrence from "
             "order n_iter, which is to exceed |z|.",
             &special::bessel_jn),
    function("scipy.special", "expi(x)",
             "The exponential integral Ei(x), of floats; the principal value above 0.",
             &special::expi),
    function("scipy.special", "exp1(x)",
             "The exponential integral E_1(x), of floats above 0; NaN below.", &special::exp1),
    function("scipy.special", "expn(n, x)",
             "The exponential integral E_n(x) of whole order n; the two broadcast.",
             &special::expn),
    function("scipy.special", "spence(x)",
             "Spence's function, the integral of log(t) / (1 - t) from 1 to x: the dilogarithm of "
             "1 - x.",
             &special::spence),
    function("scipy.special", "dawsn(x)",
             "Dawson's integral, exp(-x**2) times that of exp(t**2) from 0 to x, of floats.",
             &special::dawsn),
    function("scipy.special", "fresnel(x)",
             "Fresnel's integrals S and C, of sin(pi t**2 / 2) and cos(pi t**2 / 2) from 0 to x, "
             "as a pair.",
             &special::fresnel),
    function("scipy.special", "sici(x)",
             "The integral of sin(t) / t from 0 to x, and that of cos(t) / t from infinity to |x|, "
             "as a pair.",
             &special::sici),
    function(
        "scipy.special", "owens_t(h, a)",
        "Owen's T, the probability of X > h and 0 < Y < a X for normal X and Y; the two broadcast.",
        &special::owens_t),
    function("scipy.special", "hyp1f1(a, b, x)",
             "Kummer's confluent hypergeometric function M(a, b, x), differentiable in x; the "
             "three broadcast.",
             &special::hyp1f1),
    function("scipy.special", "hyp2f1(a, b, c, x)",
             "Gauss's hypergeometric function F(a, b; c; x) for x up to 1, differentiable in x; "
             "the four broadcast.",
             &special::hyp2f1),
    function("scipy.special", "wofz(z)",
             "Faddeeva's function exp(-z**2) erfc(-i z), of floats or complex numbers, as complex "
             "numbers.",
             &special::wofz),
    function("scipy.special", "sph_harm_y(n, m, theta, phi, *, n_max=None)",
             "Spherical harmonics of degree n and order m at the polar angle theta and the azimuth "
             "phi, as complex numbers; all broadcast. n_max is the largest degree, needed where n "
             "is not known.",
             &special::sph_harm_y),
    function("scipy.special", "bernoulli(n)",
             "The Bernoulli numbers B_0 to B_n, as the default float.", &special::bernoulli),
};

}  // namespace
}  // namespace plait
