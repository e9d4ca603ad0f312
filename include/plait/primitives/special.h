// Special functions as elementwise primitives. Operands have one dtype, and one shape unless one is
// a scalar.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

namespace plait {

extern const Primitive igamma_p, igammac_p, igamma_grad_a_p, random_gamma_grad_p, betainc_p, zeta_p,
    polygamma_p, bessel_i0e_p, bessel_i1e_p, erfc_p, erfcx_p, ndtri_p, expi_p, expn_p, spence_p,
    dawsn_p, fresnel_sine_p, fresnel_cosine_p, sine_integral_p, cosine_integral_p, owens_t_p,
    hyp1f1_p, hyp2f1_p;

namespace lax {

// The regularized incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x).
Array igamma(Operand a, Operand x);
Array igammac(Operand a, Operand x);
Array igamma_grad_a(Operand a, Operand x);       // dP/da
Array random_gamma_grad(Operand a, Operand x);   // dx/da where P(a, x) stays the same
Array betainc(Operand a, Operand b, Operand x);  // the regularized incomplete beta function
Array zeta(Operand x, Operand q);                // Hurwitz's: the sum of (q + k)^-x
Array polygamma(Operand m, Operand x);           // the derivative of digamma of order m
Array bessel_i0e(Operand x);                     // exp(-|x|) I_0(x)
Array bessel_i1e(Operand x);
Array erfc(Operand x);
Array erfcx(Operand x);  // exp(x^2) erfc(x)
Array ndtri(Operand p);  // the inverse of the standard normal distribution function
// Exponential integrals; the order n of E_n is whole.
Array expi(Operand x);
Array expn(Operand n, Operand x);
Array spence(Operand x);  // the dilogarithm of 1 - x
Array dawsn(Operand x);   // exp(-x^2) times the integral of exp(t^2) from 0
Array fresnel_sine(Operand x);
Array fresnel_cosine(Operand x);
Array sine_integral(Operand x);
Array cosine_integral(Operand x);
Array owens_t(Operand h, Operand a);
// Hypergeometric functions M(a, b, x) and F(a, b; c; x).
Array hyp1f1(Operand a, Operand b, Operand x);
Array hyp2f1(Operand a, Operand b, Operand c, Operand x);

}  // namespace lax
}  // namespace plait
