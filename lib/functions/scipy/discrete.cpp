// plait.scipy.stats: distributions of integers.
// SPDX-License-Identifier: Apache-2.0
#include "functions/scipy/stats.h"

namespace plait {
using namespace functions;  // NOLINT

namespace scipy {
namespace {

// k - loc and the parameters, in one float dtype and shape.
Arrays counts(std::string_view function, Operand k, Operand loc,
              std::initializer_list<Operand> parameters) {
  const Standardised all = standardised(function, k, loc, 1, parameters);
  Arrays result{all.z};
  result.insert(result.end(), all.parameters.begin(), all.parameters.end());
  return result;
}
Array is_whole(const Array& k) { return numpy::equal(k, lax::floor(k)); }
// log(n choose k)
Array log_choose(const Array& n, const Array& k) {
  return lax::lgamma(n + 1) - lax::lgamma(k + 1) - lax::lgamma(n - k + 1);
}
// The log probability where k is possible, computed for a k that is.
template <class F>
Array possible(const Array& k, const Array& inside, double safe, F logarithm) {
  return within(inside, logarithm(numpy::where(inside | numpy::isnan(k), k, safe)), -INFINITY);
}

}  // namespace

// --- Bernoulli -----------------------------------------------------------------------------------

Array stats::bernoulli::logpmf(Operand k, Operand p, Operand loc) {
  const Arrays all = counts("logpmf", k, loc, {p});
  const Array inside = numpy::equal(all[0], 0) | numpy::equal(all[0], 1);
  return possible(all[0], inside, 0, [&](const Array& k) {
    return special::xlogy(k, all[1]) + special::xlog1py(1.0 - k, -all[1]);
  });
}
Array stats::bernoulli::pmf(Operand k, Operand p, Operand loc) {
  return lax::exp(logpmf(k, p, loc));
}
Array stats::bernoulli::cdf(Operand k, Operand p) {
  const Arrays all = floats("cdf", {k, p});
  const Array is_valid = (all[1] >= 0) & (all[1] <= 1) & ~numpy::isnan(all[0]);
  const Array steps = numpy::where(all[0] < 0, 0, numpy::where(all[0] < 1, 1.0 - all[1], 1));
  return numpy::where(is_valid, steps, NAN);
}
Array stats::bernoulli::ppf(Operand q, Operand p) {
  const Arrays all = floats("ppf", {q, p});
  const Array is_valid = (all[0] >= 0) & (all[0] <= 1) & (all[1] >= 0) & (all[1] <= 1);
  const Array steps =
      numpy::where(numpy::equal(all[0], 0), -1, numpy::where(all[0] <= 1.0 - all[1], 0, 1));
  return astype(numpy::where(is_valid, steps, NAN), all[0].dtype());
}

// --- binomial and negative binomial --------------------------------------------------------------

Array stats::binom::logpmf(Operand k, Operand n, Operand p, Operand loc) {
  const Arrays all = counts("logpmf", k, loc, {n, p});
  const Array inside = (all[0] >= 0) & (all[0] <= all[1]) & is_whole(all[0]);
  return possible(all[0], inside, 0, [&](const Array& k) {
    const Array powers = special::xlogy(k, all[2]) + special::xlog1py(all[1] - k, -all[2]);
    return log_choose(all[1], k) + powers;
  });
}
Array stats::binom::pmf(Operand k, Operand n, Operand p, Operand loc) {
  return lax::exp(logpmf(k, n, p, loc));
}
Array stats::nbinom::logpmf(Operand k, Operand n, Operand p, Operand loc) {
  const Arrays all = counts("logpmf", k, loc, {n, p});
  return possible(all[0], (all[0] >= 0) & is_whole(all[0]), 0, [&](const Array& k) {
    const Array powers = special::xlogy(all[1], all[2]) + special::xlog1py(k, -all[2]);
    return lax::lgamma(k + all[1]) - lax::lgamma(k + 1) - lax::lgamma(all[1]) + powers;
  });
}
Array stats::nbinom::pmf(Operand k, Operand n, Operand p, Operand loc) {
  return lax::exp(logpmf(k, n, p, loc));
}
Array stats::betabinom::logpmf(Operand k, Operand n, Operand a, Operand b, Operand loc) {
  const Arrays all = counts("logpmf", k, loc, {n, a, b});
  const Array inside = (all[0] >= 0) & (all[0] <= all[1]) & is_whole(all[0]);
  return possible(all[0], inside, 0, [&](const Array& k) {
    return log_choose(all[1], k) + special::betaln(k + all[2], all[1] - k + all[3]) -
           special::betaln(all[2], all[3]);
  });
}
Array stats::betabinom::pmf(Operand k, Operand n, Operand a, Operand b, Operand loc) {
  return lax::exp(logpmf(k, n, a, b, loc));
}

// --- geometric and Poisson -----------------------------------------------------------------------

Array stats::geom::logpmf(Operand k, Operand p, Operand loc) {
  const Arrays all = counts("logpmf", k, loc, {p});
  return possible(all[0], (all[0] >= 1) & is_whole(all[0]), 1, [&](const Array& k) {
    return special::xlog1py(k - 1, -all[1]) + lax::log(all[1]);
  });
}
Array stats::geom::pmf(Operand k, Operand p, Operand loc) { return lax::exp(logpmf(k, p, loc)); }

Array stats::poisson::logpmf(Operand k, Operand mu, Operand loc) {
  const Arrays all = counts("logpmf", k, loc, {mu});
  return possible(all[0], (all[0] >= 0) & is_whole(all[0]), 0, [&](const Array& k) {
    return special::xlogy(k, all[1]) - lax::lgamma(k + 1) - all[1];
  });
}
Array stats::poisson::pmf(Operand k, Operand mu, Operand loc) {
  return lax::exp(logpmf(k, mu, loc));
}
Array stats::poisson::cdf(Operand k, Operand mu, Operand loc) {
  const Arrays all = counts("cdf", k, loc, {mu});
  const Array below = all[0] < 0;
  return numpy::where(below, 0,
                      lax::igammac(numpy::where(below, 0, lax::floor(all[0])) + 1, all[1]));
}
// The sum of -p log p over the counts of a mean of at most 64, and beyond the series (1/2) log(2 pi
// e mu) - 1 / (12 mu) - 1 / (24 mu^2) - 19 / (360 mu^3) - 9 / (80 mu^4).
Array stats::poisson::entropy(Operand mu, Operand loc) {
  const Arrays all = floats("entropy", {mu, loc});
  const Array mean = all[0], is_large = mean > 64;
  const Array small = numpy::where(is_large, 1, mean), large = numpy::where(is_large, mean, 100);
  constexpr int most = 160;
  const Array k = counting(most, mean.dtype());
  const Array logarithms = logpmf(k, numpy::expand_dims(small, {-1}));
  const Array sum = -numpy::sum(special::xlogy(lax::exp(logarithms), lax::exp(logarithms)), {-1});
  const Array inverse = 1.0 / large;
  const Array series =
      inverse * (inverse * (inverse * (inverse * (9.0 / 80) + 19.0 / 360) + 1.0 / 24) + 1.0 / 12);
  const Array far = lax::log(large * (2 * M_PI * M_E)) * 0.5 - series;
  const Array entropy = numpy::where(is_large, far, sum);
  return numpy::where(mean < 0, NAN, entropy);
}

}  // namespace scipy
}  // namespace plait
