// plait::scipy: functions of scipy.special under SciPy's names; docs are in the catalogue.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/nn.h>

namespace plait::scipy {

namespace special {

using nn::log_softmax;
using nn::logsumexp;
using nn::softmax;
Array erf(Operand x);
Array erfc(Operand x);
Array erfcx(Operand x);
Array erfinv(Operand x);
Array ndtr(Operand x);
Array log_ndtr(Operand x, int series_order = 3);
Array ndtri(Operand p);
Array expit(Operand x);
Array logit(Operand x);
Array xlogy(Operand x, Operand y);
Array xlog1py(Operand x, Operand y);
Array entr(Operand x);
Array rel_entr(Operand p, Operand q);
Array kl_div(Operand p, Operand q);
Array boxcox(Operand x, Operand lmbda);
Array boxcox1p(Operand x, Operand lmbda);
Array gamma(Operand x);
Array gammaln(Operand x);
Array loggamma(Operand x);
Array gammasgn(Operand x);
Array digamma(Operand x);
Array polygamma(Operand n, Operand x);
Array zeta(Operand x, const std::optional<Array>& q = {});
Array gammainc(Operand a, Operand x);
Array gammaincc(Operand a, Operand x);
Array multigammaln(Operand a, int d);
Array factorial(Operand n, bool exact = false);
Array comb(Operand N, Operand k, bool repetition = false);
Array poch(Operand z, Operand m);
Array beta(Operand a, Operand b);
Array betaln(Operand a, Operand b);
Array betainc(Operand a, Operand b, Operand x);
Array i0(Operand x);
Array i0e(Operand x);
Array i1(Operand x);
Array i1e(Operand x);
Array bessel_jn(Operand z, int v, int n_iter = 50);
Array expi(Operand x);
Array exp1(Operand x);
Array expn(Operand n, Operand x);
Array spence(Operand x);
Array dawsn(Operand x);
std::pair<Array, Array> fresnel(Operand x);
std::pair<Array, Array> sici(Operand x);
Array owens_t(Operand h, Operand a);
Array hyp1f1(Operand a, Operand b, Operand x);
Array hyp2f1(Operand a, Operand b, Operand c, Operand x);
Array wofz(Operand z);
Array sph_harm_y(Operand n, Operand m, Operand theta, Operand phi,
                 const std::optional<int>& n_max = {});
Array bernoulli(int n);

}  // namespace special

}  // namespace plait::scipy
