// Elementwise primitives: special functions of statistics and physics.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/elementwise/special.h"

#include <cmath>

namespace plait {
using namespace special;  // NOLINT

namespace {

using Values = Sample::Input::Values;

Array sign_of(const Array& x) {
  const Array zero = literal_like(0, x);
  const Array above = lax::select(lax::gt(x, zero), literal_like(1, x), zero);
  return lax::select(lax::lt(x, zero), literal_like(-1, x), above);
}

Partial refused(const char* primitive, const char* operand) {
  return [=](const Array&, const Array&, const Array&) -> Array {
    refuse_derivative(primitive, operand);
  };
}
// An operand that is whole has no derivative.
Partial none() {
  return [](const Array& x, const Array&, const Array&) { return Array::literal(0, x.dtype()); };
}

// log of x^power, where 0^0 = 1.
Array log_power(const Array& power, const Array& x) {
  const Array one = literal_like(1, x), zero = literal_like(0, x);
  const Array is_flat =
      lax::bitwise_and(lax::eq(power, Array::literal(0, power.dtype())), lax::eq(x, zero));
  const Array base =
      lax::select(is_flat, broadcast_to(one, is_flat.shape()), broadcast_to(x, is_flat.shape()));
  return power * lax::log(base);
}
// x^(a - 1) exp(-x) / Gamma(a)
Array gamma_density(const Array& a, const Array& x) {
  const Array above = log_power(a - 1.0, x) - x;
  return lax::exp(above - lax::lgamma(a));
}

}  // namespace

// --- Of the gamma function -----------------------------------------------------------------------

constinit const Primitive igamma_p{"igamma"};
static const auto igamma_def =
    define(igamma_p, "The regularized lower incomplete gamma function P(a, x).")
        .family(elementwise(floating, 2, ResultType::same, Values::positive))
        .rule<Pointwise>(binary_loops<floating>([](auto a, auto x) { return math::igamma(a, x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(binary([](auto a, auto x, auto) { return lax::igamma_grad_a(a, x); },
                          [](auto a, auto x, auto) { return gamma_density(a, x); }));
Array lax::igamma(Operand a, Operand x) { return bind(igamma_p, {a, x}); }

constinit const Primitive igammac_p{"igammac"};
static const auto igammac_def =
    define(igammac_p, "The regularized upper incomplete gamma function Q(a, x).")
        .family(elementwise(floating, 2, ResultType::same, Values::positive))
        .rule<Pointwise>(binary_loops<floating>([](auto a, auto x) { return math::igammac(a, x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(binary([](auto a, auto x, auto) { return -lax::igamma_grad_a(a, x); },
                          [](auto a, auto x, auto) { return -gamma_density(a, x); }));
Array lax::igammac(Operand a, Operand x) { return bind(igammac_p, {a, x}); }

constinit const Primitive igamma_grad_a_p{"igamma_grad_a"};
static const auto igamma_grad_a_def =
    define(igamma_grad_a_p, "The derivative of igamma(a, x) in a.")
        .family(elementwise(floating, 2, ResultType::same, Values::positive))
        .rule<Pointwise>(
            binary_loops<floating>([](auto a, auto x) { return math::igamma_grad_a(a, x); }))
        .rule<Spelling>(spelling::function())
        .rule<Samples>(no_samples)
        .rule<Jvp>(binary(refused("igamma_grad_a", "a"), [](auto a, auto x, auto) {
          return gamma_density(a, x) * (lax::log(x) - lax::digamma(a));
        }));
Array lax::igamma_grad_a(Operand a, Operand x) { return bind(igamma_grad_a_p, {a, x}); }

constinit const Primitive random_gamma_grad_p{"random_gamma_grad"};
static const auto random_gamma_grad_def =
    define(random_gamma_grad_p,
           "The derivative in a of the x at which igamma(a, x) has a given value: of a sample of "
           "the gamma distribution.")
        .family(elementwise(floating, 2, ResultType::same, Values::positive))
        .rule<Pointwise>(
            binary_loops<floating>([](auto a, auto x) { return math::random_gamma_grad(a, x); }))
        .rule<Spelling>(spelling::function())
        .rule<Samples>(no_samples)
        // r = -P_a / p has r' = digamma(a) - log x - r p' / p with p' / p = (a - 1) / x - 1.
        .rule<Jvp>(binary(refused("random_gamma_grad", "a"), [](auto a, auto x, auto out) {
          const Array ratio = (a - 1.0) / x - 1.0;
          return (lax::digamma(a) - lax::log(x)) - out * ratio;
        }));
Array lax::random_gamma_grad(Operand a, Operand x) { return bind(random_gamma_grad_p, {a, x}); }

constinit const Primitive zeta_p{"zeta"};
static const auto zeta_def =
    define(zeta_p, "Hurwitz's zeta function of x and q, the sum of (q + k)^-x over k >= 0.")
        .family(elementwise(floating, 2))
        .rule<Pointwise>(binary_loops<floating>([](auto s, auto q) { return math::zeta(s, q); }))
        .rule<Spelling>(spelling::function())
        .rule<Samples>(no_samples)
        .rule<Jvp>(binary(refused("zeta", "x"),
                          [](auto s, auto q, auto) { return -s * lax::zeta(s + 1.0, q); }));
Array lax::zeta(Operand x, Operand q) { return bind(zeta_p, {x, q}); }

constinit const Primitive polygamma_p{"polygamma"};
static const auto polygamma_def =
    define(polygamma_p, "The derivative of digamma of whole order m, at x.")
        .family(elementwise(floating, 2))
        .rule<Pointwise>(
            binary_loops<floating>([](auto m, auto x) { return math::polygamma(m, x); }))
        .rule<Spelling>(spelling::function())
        .rule<Samples>(no_samples)
        .rule<Jvp>(binary(none(), [](auto m, auto x, auto) { return lax::polygamma(m + 1.0, x); }));
Array lax::polygamma(Operand m, Operand x) { return bind(polygamma_p, {m, x}); }

constinit const Primitive betainc_p{"betainc"};
static const auto betainc_def =
    define(betainc_p, "The regularized incomplete beta function I_x(a, b).")
        .family(elementwise(floating, 3))
        .rule<Pointwise>(loops_of<3>([](auto a, auto b, auto x) { return math::betainc(a, b, x); }))
        .rule<Spelling>(spelling::function())
        .rule<Samples>(no_samples)
        .rule<Jvp>(in_last("betainc", {"a", "b"}, [](auto in) {
          // dI/dx = x^(a - 1) (1 - x)^(b - 1) / B(a, b)
          const Array &a = in[0], &b = in[1], &x = in[2];
          const Array powers = log_power(a - 1.0, x) + log_power(b - 1.0, 1.0 - x);
          return lax::exp(powers - (lax::lgamma(a) + lax::lgamma(b) - lax::lgamma(a + b)));
        }));
Array lax::betainc(Operand a, Operand b, Operand x) { return bind(betainc_p, {a, b, x}); }

// --- Bessel functions ----------------------------------------------------------------------------

constinit const Primitive bessel_i0e_p{"bessel_i0e"};
static const auto bessel_i0e_def =
    define(bessel_i0e_p, "The modified Bessel function I_0(x), times exp(-|x|).")
        .family(elementwise(floating))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::bessel_i0e(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(unary([](auto x, auto y) { return lax::bessel_i1e(x) - sign_of(x) * y; }));
Array lax::bessel_i0e(Operand x) { return bind(bessel_i0e_p, {x}); }

constinit const Primitive bessel_i1e_p{"bessel_i1e"};
static const auto bessel_i1e_def =
    define(bessel_i1e_p, "The modified Bessel function I_1(x), times exp(-|x|).")
        .family(elementwise(floating))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::bessel_i1e(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(unary([](auto x, auto y) {  // I_1' = I_0 - I_1 / x, and I_1 / x is 1/2 at 0
          const Array is_zero = lax::eq(x, literal_like(0, x));
          const Array divisor = lax::select(is_zero, literal_like(1, x), x);
          const Array ratio = lax::select(is_zero, literal_like(0.5, x), y / divisor);
          return lax::bessel_i0e(x) - sign_of(x) * y - ratio;
        }));
Array lax::bessel_i1e(Operand x) { return bind(bessel_i1e_p, {x}); }

// --- Of the normal distribution ------------------------------------------------------------------

constinit const Primitive erfc_p{"erfc"};
static const auto erfc_def =
    define(erfc_p, "The complement of the error function, 1 - erf(x), also where it is small.")
        .family(elementwise(floating))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::erfc(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(unary([](auto x, auto) {
          return lax::exp(-(x * x)) * -1.1283791670955126;
        }));  // -2/sqrt(pi) exp(-x^2)
Array lax::erfc(Operand x) { return bind(erfc_p, {x}); }

constinit const Primitive erfcx_p{"erfcx"};
static const auto erfcx_def =
    define(erfcx_p, "exp(x^2) times the complement of the error function.")
        .family(elementwise(floating))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::erfcx(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(unary([](auto x, auto y) { return 2.0 * x * y - 1.1283791670955126; }));
Array lax::erfcx(Operand x) { return bind(erfcx_p, {x}); }

constinit const Primitive ndtri_p{"ndtri"};
static const auto ndtri_def =
    define(ndtri_p, "The inverse of the standard normal distribution function.")
        .family(elementwise(floating, 1, ResultType::same, Values::unit))
        .rule<Pointwise>(unary_loops<floating>([](auto p) { return math::ndtri(p); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(unary([](auto, auto y) {
          return lax::exp(0.5 * (y * y)) * 2.5066282746310002;
        }));  // sqrt(2 pi) exp(y^2 / 2)
Array lax::ndtri(Operand p) { return bind(ndtri_p, {p}); }

// --- Integrals -----------------------------------------------------------------------------------

constinit const Primitive expi_p{"expi"};
static const auto expi_def =
    define(expi_p, "The exponential integral Ei(x).")
        .family(elementwise(floating, 1, ResultType::same, Values::nonzero))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::expi(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(unary([](auto x, auto) { return lax::exp(x) / x; }));
Array lax::expi(Operand x) { return bind(expi_p, {x}); }

constinit const Primitive expn_p{"expn"};
static const auto expn_def =
    define(expn_p, "The exponential integral E_n(x) of whole order n.")
        .family(elementwise(floating, 2))
        .rule<Pointwise>(binary_loops<floating>([](auto n, auto x) { return math::expn(n, x); }))
        .rule<Spelling>(spelling::function())
        .rule<Samples>(no_samples)
        .rule<Jvp>(binary(none(), [](auto n, auto x, auto) { return -lax::expn(n - 1.0, x); }));
Array lax::expn(Operand n, Operand x) { return bind(expn_p, {n, x}); }

constinit const Primitive spence_p{"spence"};
static const auto spence_def =
    define(spence_p, "Spence's function, the integral of log(t) / (1 - t) from 1 to x.")
        .family(elementwise(floating, 1, ResultType::same, Values::positive))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::spence(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(unary([](auto x, auto) {  // log(x) / (1 - x), a series in x - 1 near 1
          const Array is_near = lax::lt(lax::abs(x - 1.0), literal_like(1e-3, x));
          const Array far = lax::select(is_near, literal_like(2, x), x);
          const Array t = lax::select(is_near, x, literal_like(1, x)) - 1.0;
          const Array series = t * (t * (t * (t * 0.2 - 0.25) + 1.0 / 3) - 0.5) + 1.0;
          return lax::select(is_near, -series, lax::log(far) / (1.0 - far));
        }));
Array lax::spence(Operand x) { return bind(spence_p, {x}); }

}  // namespace plait
