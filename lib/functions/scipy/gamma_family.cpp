// plait.scipy.stats: distributions of gamma and beta functions, of angles, and truncated ones.
// SPDX-License-Identifier: Apache-2.0
#include "functions/scipy/stats.h"

namespace plait {
using namespace functions;  // NOLINT

namespace scipy {
namespace {

// The logarithm of a probability, by that of its complement where it is near 1.
Array log_of(const Array& probability, const Array& complement) {
  const Array is_small = ~(probability > 0.5);
  const Array small = numpy::where(is_small, probability, 1);
  return numpy::where(is_small, lax::log(small),
                      lax::log1p(-numpy::where(is_small, 0, complement)));
}

}  // namespace

// --- gamma: z^(a - 1) exp(-z) / (Gamma(a) scale) for z >= 0 --------------------------------------

Array stats::gamma::logpdf(Operand x, Operand a, Operand loc, Operand scale) {
  const auto [z, width, shape] = standardised("logpdf", x, loc, scale, {a});
  const Array inside = z >= 0, safe = numpy::where(inside, z, 1);
  const Array powers = special::xlogy(shape[0] - 1, safe) - z;
  return within(inside, powers - lax::lgamma(shape[0]) - lax::log(width), -INFINITY);
}
Array stats::gamma::pdf(Operand x, Operand a, Operand loc, Operand scale) {
  return lax::exp(logpdf(x, a, loc, scale));
}
Array stats::gamma::cdf(Operand x, Operand a, Operand loc, Operand scale) {
  const auto [z, width, shape] = standardised("cdf", x, loc, scale, {a});
  return lax::igamma(shape[0], numpy::maximum(z, 0));
}
Array stats::gamma::logcdf(Operand x, Operand a, Operand loc, Operand scale) {
  return log_of(cdf(x, a, loc, scale), sf(x, a, loc, scale));
}
Array stats::gamma::sf(Operand x, Operand a, Operand loc, Operand scale) {
  const auto [z, width, shape] = standardised("sf", x, loc, scale, {a});
  return lax::igammac(shape[0], numpy::maximum(z, 0));
}
Array stats::gamma::logsf(Operand x, Operand a, Operand loc, Operand scale) {
  return log_of(sf(x, a, loc, scale), cdf(x, a, loc, scale));
}

// --- chi-squared: gamma of half the degrees of freedom, twice as wide ----------------------------

Array stats::chi2::logpdf(Operand x, Operand df, Operand loc, Operand scale) {
  return gamma::logpdf(x, numpy::multiply(df, 0.5), loc, numpy::multiply(scale, 2.0));
}
Array stats::chi2::pdf(Operand x, Operand df, Operand loc, Operand scale) {
  return gamma::pdf(x, numpy::multiply(df, 0.5), loc, numpy::multiply(scale, 2.0));
}
Array stats::chi2::cdf(Operand x, Operand df, Operand loc, Operand scale) {
  return gamma::cdf(x, numpy::multiply(df, 0.5), loc, numpy::multiply(scale, 2.0));
}
Array stats::chi2::logcdf(Operand x, Operand df, Operand loc, Operand scale) {
  return gamma::logcdf(x, numpy::multiply(df, 0.5), loc, numpy::multiply(scale, 2.0));
}
Array stats::chi2::sf(Operand x, Operand df, Operand loc, Operand scale) {
  return gamma::sf(x, numpy::multiply(df, 0.5), loc, numpy::multiply(scale, 2.0));
}
Array stats::chi2::logsf(Operand x, Operand df, Operand loc, Operand scale) {
  return gamma::logsf(x, numpy::multiply(df, 0.5), loc, numpy::multiply(scale, 2.0));
}

// --- beta: z^(a - 1) (1 - z)^(b - 1) / (B(a, b) scale) on [0, 1] ---------------------------------

Array stats::beta::logpdf(Operand x, Operand a, Operand b, Operand loc, Operand scale) {
  const auto [z, width, shapes] = standardised("logpdf", x, loc, scale, {a, b});
  const Array inside = (z >= 0) & (z <= 1);
  const Array safe = numpy::where(inside | numpy::isnan(z), z, 0.5);
  const Array powers = special::xlogy(shapes[0] - 1, safe) + special::xlog1py(shapes[1] - 1, -safe);
  return within(inside, powers - special::betaln(shapes[0], shapes[1]) - lax::log(width),
                -INFINITY);
}
Array stats::beta::pdf(Operand x, Operand a, Operand b, Operand loc, Operand scale) {
  return lax::exp(logpdf(x, a, b, loc, scale));
}
Array stats::beta::cdf(Operand x, Operand a, Operand b, Operand loc, Operand scale) {
  const auto [z, width, shapes] = standardised("cdf", x, loc, scale, {a, b});
  return lax::betainc(shapes[0], shapes[1], numpy::clip(z, 0.0, 1.0));
}
Array stats::beta::logcdf(Operand x, Operand a, Operand b, Operand loc, Operand scale) {
  return log_of(cdf(x, a, b, loc, scale), sf(x, a, b, loc, scale));
}
Array stats::beta::sf(Operand x, Operand a, Operand b, Operand loc, Operand scale) {
  const auto [z, width, shapes] = standardised("sf", x, loc, scale, {a, b});
  return lax::betainc(shapes[1], shapes[0], numpy::clip(1.0 - z, 0.0, 1.0));
}
Array stats::beta::logsf(Operand x, Operand a, Operand b, Operand loc, Operand scale) {
  return log_of(sf(x, a, b, loc, scale), cdf(x, a, b, loc, scale));
}

// --- Student's t: (1 + z^2 / df)^(-(df + 1) / 2), normalised -------------------------------------

Array stats::t::logpdf(Operand x, Operand df, Operand loc, Operand scale) {
  const auto [z, width, shape] = standardised("logpdf", x, loc, scale, {df});
  const Array half = shape[0] * 0.5;
  const Array norm = lax::lgamma(half + 0.5) - lax::lgamma(half) - lax::log(shape[0] * M_PI) * 0.5;
  return norm - (half + 0.5) * lax::log1p(z * z / shape[0]) - lax::log(width);
}
Array stats::t::pdf(Operand x, Operand df, Operand loc, Operand scale) {
  return lax::exp(logpdf(x, df, loc, scale));
}
// Half of I_(df / (df + z^2))(df / 2, 1/2) is the probability beyond |z|. That has no derivative at
// 0; the distribution function is 1/2 + density(0) (z - (df + 1) z^3 / (6 df)) there.
namespace {
Array t_below(const Array& z, const Array& df) {
  const Array is_near = lax::abs(z) < lax::min(df, filled(1, df)) * 1e-4;
  const Array far = numpy::where(is_near, 1, z), near = numpy::where(is_near, z, 0);
  const Array tail = lax::betainc(df * 0.5, filled(0.5, df), df / (df + far * far)) * 0.5;
  const Array centre = near - near * near * near * ((df + 1) / (df * 6));
  const Array middle = stats::t::pdf(filled(0, z), df) * centre + 0.5;
  return numpy::where(is_near, middle, numpy::where(z < 0, tail, 1.0 - tail));
}
}  // namespace
Array stats::t::cdf(Operand x, Operand df, Operand loc, Operand scale) {
  const auto [z, width, shape] = standardised("cdf", x, loc, scale, {df});
  return t_below(z, shape[0]);
}
Array stats::t::logcdf(Operand x, Operand df, Operand loc, Operand scale) {
  return log_of(cdf(x, df, loc, scale), sf(x, df, loc, scale));
}
Array stats::t::sf(Operand x, Operand df, Operand loc, Operand scale) {
  const auto [z, width, shape] = standardised("sf", x, loc, scale, {df});
  return t_below(-z, shape[0]);
}
Array stats::t::logsf(Operand x, Operand df, Operand loc, Operand scale) {
  return log_of(sf(x, df, loc, scale), cdf(x, df, loc, scale));
}

// --- generalized normal: beta exp(-|x|^beta) / (2 Gamma(1 / beta)) -------------------------------

Array stats::gennorm::logpdf(Operand x, Operand beta) {
  const Arrays all = floats("logpdf", {x, beta});
  const Array norm = lax::log(all[1] * 0.5) - lax::lgamma(1.0 / all[1]);
  return norm - lax::pow(lax::abs(all[0]), all[1]);
}
Array stats::gennorm::pdf(Operand x, Operand beta) { return lax::exp(logpdf(x, beta)); }
// Near 0, where the incomplete gamma function has no derivative, 1/2 + density(0) x.
Array stats::gennorm::cdf(Operand x, Operand beta) {
  const Arrays all = floats("cdf", {x, beta});
  const Array size = lax::pow(lax::abs(all[0]), all[1]), is_near = size < 1e-17;
  const Array near = numpy::where(is_near, all[0], 0);
  const Array far = lax::pow(lax::abs(numpy::where(is_near, 1, all[0])), all[1]);
  const Array tail = lax::igammac(1.0 / all[1], far) * 0.5;
  const Array middle = near * pdf(filled(0, near), all[1]) + 0.5;
  return numpy::where(is_near, middle, numpy::where(all[0] < 0, tail, 1.0 - tail));
}
Array stats::gennorm::logcdf(Operand x, Operand beta) { return log_of(cdf(x, beta), sf(x, beta)); }
Array stats::gennorm::sf(Operand x, Operand beta) { return cdf(numpy::negative(x), beta); }
Array stats::gennorm::logsf(Operand x, Operand beta) { return log_of(sf(x, beta), cdf(x, beta)); }

// --- truncated normal on [a, b] ------------------------------------------------------------------

namespace {

// log(Phi(high) - Phi(low)), low <= high: an interval above 0 is mirrored, one below 0 takes the
// difference of logarithms, and one around 0 the complement of both tails.
Array log_mass(const Array& low, const Array& high) {
  const Array is_above = low > 0;
  const Array a = numpy::where(is_above, -high, low), b = numpy::where(is_above, -low, high);
  const Array is_below = b <= 0, is_empty = numpy::equal(a, b);
  const Array upper = special::log_ndtr(numpy::where(is_below, b, 0));
  const Array lower = special::log_ndtr(numpy::where(is_below & ~is_empty, a, -1));
  const Array gap = numpy::where(is_below & ~is_empty, upper - lower, 1);
  const Array difference = upper + log_one_minus_exp(gap);
  const Array tails =
      special::ndtr(numpy::where(is_below, -1, a)) + special::ndtr(numpy::where(is_below, -1, -b));
  const Array mass = numpy::where(is_below, difference, lax::log1p(-tails));
  return numpy::where(is_empty, -INFINITY, mass);
}
struct Truncated {
  Array z, scale, a, b;
};
Truncated truncated(std::string_view function, Operand x, Operand a, Operand b, Operand loc,
                    Operand scale) {
  const auto [z, width, ends] = standardised(function, x, loc, scale, {a, b});
  return {z, width, ends[0], ends[1]};
}

}  // namespace

Array stats::truncnorm::logpdf(Operand x, Operand a, Operand b, Operand loc, Operand scale) {
  const Truncated n = truncated("logpdf", x, a, b, loc, scale);
  const Array inside = (n.z >= n.a) & (n.z <= n.b);
  return within(inside, norm::logpdf(n.z) - lax::log(n.scale) - log_mass(n.a, n.b), -INFINITY);
}
Array stats::truncnorm::pdf(Operand x, Operand a, Operand b, Operand loc, Operand scale) {
  return lax::exp(logpdf(x, a, b, loc, scale));
}
Array stats::truncnorm::logcdf(Operand x, Operand a, Operand b, Operand loc, Operand scale) {
  const Truncated n = truncated("logcdf", x, a, b, loc, scale);
  const Array z = lax::min(lax::max(n.z, n.a), n.b);
  return lax::min(log_mass(n.a, z) - log_mass(n.a, n.b), filled(0, z));
}
Array stats::truncnorm::cdf(Operand x, Operand a, Operand b, Operand loc, Operand scale) {
  return lax::exp(logcdf(x, a, b, loc, scale));
}
Array stats::truncnorm::logsf(Operand x, Operand a, Operand b, Operand loc, Operand scale) {
  const Truncated n = truncated("logsf", x, a, b, loc, scale);
  const Array z = lax::min(lax::max(n.z, n.a), n.b);
  return lax::min(log_mass(z, n.b) - log_mass(n.a, n.b), filled(0, z));
}
Array stats::truncnorm::sf(Operand x, Operand a, Operand b, Operand loc, Operand scale) {
  return lax::exp(logsf(x, a, b, loc, scale));
}

// --- angles --------------------------------------------------------------------------------------

Array stats::vonmises::logpdf(Operand x, Operand kappa) {
  const Arrays all = floats("logpdf", {x, kappa});
  const Array norm = lax::log(lax::bessel_i0e(all[1])) + std::log(2 * M_PI);
  return all[1] * (lax::cos(all[0]) - 1) - norm;
}
Array stats::vonmises::pdf(Operand x, Operand kappa) { return lax::exp(logpdf(x, kappa)); }
Array stats::wrapcauchy::logpdf(Operand x, Operand c) {
  const Arrays all = floats("logpdf", {x, c});
  const Array square = all[1] * all[1];
  const Array density = lax::log1p(-square) - std::log(2 * M_PI) -
                        lax::log(1.0 + square - all[1] * lax::cos(all[0]) * 2);
  return within((all[0] >= 0) & (all[0] <= 2 * M_PI), density, -INFINITY);
}
Array stats::wrapcauchy::pdf(Operand x, Operand c) { return lax::exp(logpdf(x, c)); }

}  // namespace scipy
}  // namespace plait
