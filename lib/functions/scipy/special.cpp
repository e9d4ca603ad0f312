// plait.scipy: special functions and the normal distribution.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/lax.h>
#include <plait/functions/scipy.h>

#include <cmath>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace scipy {

Array special::erf(Operand x) { return lax::erf(floating_only("erf", x)); }
Array special::erfinv(Operand x) { return lax::erf_inv(floating_only("erfinv", x)); }
Array special::expit(Operand x) { return lax::logistic(floating_only("expit", x)); }
Array special::logit(Operand x) {
  const Array p = floating_only("logit", x);
  return lax::sub(lax::log(p), lax::log1p(lax::neg(p)));
}
Array special::gammaln(Operand x) { return lax::lgamma(floating_only("gammaln", x)); }
Array special::digamma(Operand x) { return lax::digamma(floating_only("digamma", x)); }

namespace {
struct Standard {
  Array z, scale;  // (x - loc) / scale
};
Standard standard(std::string_view function, const Operand& x, const Operand& loc,
                  const Operand& scale) {
  const Arrays all = promoted_inexact(function, {x, loc, scale});
  for (const Array& array : all) floating_only(function, array);
  return {numpy::divide(numpy::subtract(all[0], all[1]), all[2]), all[2]};
}
}  // namespace

// -z^2 / 2 - log(scale sqrt(2 pi))
Array stats::norm::logpdf(Operand x, Operand loc, Operand scale) {
  const auto [z, width] = standard("logpdf", x, loc, scale);
  const Array constant_part = numpy::add(lax::log(width), 0.5 * std::log(2 * M_PI));
  return numpy::subtract(numpy::multiply(numpy::multiply(z, z), -0.5), constant_part);
}
Array stats::norm::pdf(Operand x, Operand loc, Operand scale) {
  return lax::exp(logpdf(x, loc, scale));
}
Array stats::norm::cdf(Operand x, Operand loc, Operand scale) {
  const Array z = standard("cdf", x, loc, scale).z;
  return numpy::multiply(numpy::add(lax::erf(numpy::multiply(z, M_SQRT1_2)), 1), 0.5);
}

namespace {

[[maybe_unused]] const FunctionInfo* const special_functions[] = {
    function("scipy.special", "erf(x)", "The error function, of floats; integers are float32.",
             &special::erf),
    function("scipy.special", "erfinv(x)",
             "The inverse of the error function, of floats between -1 and 1; NaN elsewhere.",
             &special::erfinv),
    function("scipy.special", "expit(x)", "The logistic function 1 / (1 + exp(-x)), of floats.",
             &special::expit),
    function("scipy.special", "logit(x)",
             "log(x / (1 - x)), the inverse of expit, of floats between 0 and 1; NaN elsewhere.",
             &special::logit),
    function("scipy.special", "gammaln(x)", "The logarithm of |gamma(x)|, of floats.",
             &special::gammaln),
    function("scipy.special", "digamma(x)", "The derivative of gammaln, of floats.",
             &special::digamma),
    function("scipy.stats.norm", "logpdf(x, loc=0, scale=1)",
             "The logarithm of the density of the normal distribution with mean loc and deviation "
             "scale, at x; the three broadcast.",
             &stats::norm::logpdf),
    function("scipy.stats.norm", "pdf(x, loc=0, scale=1)",
             "The density of the normal distribution with mean loc and deviation scale, at x.",
             &stats::norm::pdf),
    function("scipy.stats.norm", "cdf(x, loc=0, scale=1)",
             "The probability of less than x in the normal distribution with mean loc and "
             "deviation scale; far below the mean only its absolute error is small.",
             &stats::norm::cdf),
};

}  // namespace
}  // namespace scipy
}  // namespace plait
