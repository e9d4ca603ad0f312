// plait.scipy.stats: distributions whose functions are elementary, and the normal one.
// SPDX-License-Identifier: Apache-2.0
#include "functions/scipy/stats.h"

namespace plait {
using namespace functions;  // NOLINT

namespace scipy {
namespace {

// NaN unless q is a probability.
Array probability(const Array& q) { return numpy::where((q >= 0) & (q <= 1), q, NAN); }
// loc + scale times the quantile of probability q.
template <class F>
Array quantile(std::string_view function, Operand q, Operand loc, Operand scale, F standard) {
  const Arrays all = floats(function, {q, loc, scale});
  return all[1] + all[2] * standard(probability(all[0]));
}
Array softplus(const Array& x) { return numpy::logaddexp(x, filled(0, x)); }

}  // namespace

// --- normal: -z^2 / 2 - log(scale sqrt(2 pi)) ----------------------------------------------------

Array stats::norm::logpdf(Operand x, Operand loc, Operand scale) {
  const auto [z, width, _] = standardised("logpdf", x, loc, scale);
  return z * z * -0.5 - (lax::log(width) + 0.5 * std::log(2 * M_PI));
}
Array stats::norm::pdf(Operand x, Operand loc, Operand scale) {
  return lax::exp(logpdf(x, loc, scale));
}
Array stats::norm::cdf(Operand x, Operand loc, Operand scale) {
  return special::ndtr(standardised("cdf", x, loc, scale).z);
}
Array stats::norm::logcdf(Operand x, Operand loc, Operand scale) {
  return special::log_ndtr(standardised("logcdf", x, loc, scale).z);
}
Array stats::norm::sf(Operand x, Operand loc, Operand scale) {
  return special::ndtr(-standardised("sf", x, loc, scale).z);
}
Array stats::norm::logsf(Operand x, Operand loc, Operand scale) {
  return special::log_ndtr(-standardised("logsf", x, loc, scale).z);
}
Array stats::norm::ppf(Operand q, Operand loc, Operand scale) {
  return quantile("ppf", q, loc, scale, [](const Array& p) { return lax::ndtri(p); });
}
Array stats::norm::isf(Operand q, Operand loc, Operand scale) {
  return quantile("isf", q, loc, scale, [](const Array& p) { return -lax::ndtri(p); });
}

// --- uniform on [loc, loc + scale] ---------------------------------------------------------------

Array stats::uniform::logpdf(Operand x, Operand loc, Operand scale) {
  const auto [z, width, _] = standardised("logpdf", x, loc, scale);
  return numpy::where((z >= 0) & (z <= 1), -lax::log(width),
                      numpy::where(numpy::isnan(z), z, -INFINITY));
}
Array stats::uniform::pdf(Operand x, Operand loc, Operand scale) {
  return lax::exp(logpdf(x, loc, scale));
}
Array stats::uniform::cdf(Operand x, Operand loc, Operand scale) {
  return numpy::clip(standardised("cdf", x, loc, scale).z, 0.0, 1.0);
}
Array stats::uniform::logcdf(Operand x, Operand loc, Operand scale) {
  return lax::log(cdf(x, loc, scale));
}
Array stats::uniform::sf(Operand x, Operand loc, Operand scale) {
  return numpy::clip(1.0 - standardised("sf", x, loc, scale).z, 0.0, 1.0);
}
Array stats::uniform::logsf(Operand x, Operand loc, Operand scale) {
  return lax::log(sf(x, loc, scale));
}
Array stats::uniform::ppf(Operand q, Operand loc, Operand scale) {
  return quantile("ppf", q, loc, scale, [](const Array& p) { return p; });
}
Array stats::uniform::isf(Operand q, Operand loc, Operand scale) {
  return quantile("isf", q, loc, scale, [](const Array& p) { return 1.0 - p; });
}

// --- exponential: exp(-z) / scale for z >= 0 -----------------------------------------------------

Array stats::expon::logpdf(Operand x, Operand loc, Operand scale) {
  const auto [z, width, _] = standardised("logpdf", x, loc, scale);
  return within(z >= 0, -z - lax::log(width), -INFINITY);
}
Array stats::expon::pdf(Operand x, Operand loc, Operand scale) {
  return lax::exp(logpdf(x, loc, scale));
}
Array stats::expon::cdf(Operand x, Operand loc, Operand scale) {
  return -lax::expm1(lax::neg(numpy::maximum(standardised("cdf", x, loc, scale).z, 0)));
}
Array stats::expon::logcdf(Operand x, Operand loc, Operand scale) {
  return log_one_minus_exp(numpy::maximum(standardised("logcdf", x, loc, scale).z, 0));
}
Array stats::expon::sf(Operand x, Operand loc, Operand scale) {
  return lax::exp(logsf(x, loc, scale));
}
Array stats::expon::logsf(Operand x, Operand loc, Operand scale) {
  return lax::neg(numpy::maximum(standardised("logsf", x, loc, scale).z, 0));
}
Array stats::expon::ppf(Operand q, Operand loc, Operand scale) {
  return quantile("ppf", q, loc, scale, [](const Array& p) { return -lax::log1p(-p); });
}
Array stats::expon::isf(Operand q, Operand loc, Operand scale) {
  return quantile("isf", q, loc, scale, [](const Array& p) { return -lax::log(p); });
}

// --- Cauchy: 1 / (pi scale (1 + z^2)) ------------------------------------------------------------

Array stats::cauchy::logpdf(Operand x, Operand loc, Operand scale) {
  const auto [z, width, _] = standardised("logpdf", x, loc, scale);
  return -lax::log(width * M_PI) - lax::log1p(z * z);
}
Array stats::cauchy::pdf(Operand x, Operand loc, Operand scale) {
  return lax::exp(logpdf(x, loc, scale));
}
// The angle of (-z, 1): a half turn far above, and small far below.
Array stats::cauchy::cdf(Operand x, Operand loc, Operand scale) {
  const Array z = standardised("cdf", x, loc, scale).z;
  return lax::atan2(filled(1, z), -z) * M_1_PI;
}
Array stats::cauchy::logcdf(Operand x, Operand loc, Operand scale) {
  return lax::log(cdf(x, loc, scale));
}
Array stats::cauchy::sf(Operand x, Operand loc, Operand scale) {
  const Array z = standardised("sf", x, loc, scale).z;
  return lax::atan2(filled(1, z), z) * M_1_PI;
}
Array stats::cauchy::logsf(Operand x, Operand loc, Operand scale) {
  return lax::log(sf(x, loc, scale));
}
// -1 / tan(pi p), from the nearer end.
namespace {
Array cauchy_quantile(const Array& p) {
  const Array low = -1.0 / lax::tan(lax::min(p, filled(0.5, p)) * M_PI);
  return low + 1.0 / lax::tan(lax::min(1.0 - p, filled(0.5, p)) * M_PI);
}
}  // namespace
Array stats::cauchy::ppf(Operand q, Operand loc, Operand scale) {
  return quantile("ppf", q, loc, scale, cauchy_quantile);
}
Array stats::cauchy::isf(Operand q, Operand loc, Operand scale) {
  return quantile("isf", q, loc, scale, [](const Array& p) { return -cauchy_quantile(p); });
}

// --- Laplace: exp(-|z|) / (2 scale) --------------------------------------------------------------

namespace {
Array laplace_tail(const Array& z) { return lax::exp(-lax::abs(z)) * 0.5; }
Array laplace_below(const Array& z) {
  return numpy::where(z < 0, laplace_tail(z), 1.0 - laplace_tail(z));
}
Array laplace_log_below(const Array& z) {
  return numpy::where(z < 0, -lax::abs(z) - M_LN2, lax::log1p(-laplace_tail(z)));
}
Array laplace_quantile(const Array& p) {
  const Array low = lax::log(lax::min(p, filled(0.5, p)) * 2);
  return low - lax::log(lax::min(1.0 - p, filled(0.5, p)) * 2);
}
}  // namespace
Array stats::laplace::logpdf(Operand x, Operand loc, Operand scale) {
  const auto [z, width, _] = standardised("logpdf", x, loc, scale);
  return -lax::abs(z) - lax::log(width * 2);
}
Array stats::laplace::pdf(Operand x, Operand loc, Operand scale) {
  return lax::exp(logpdf(x, loc, scale));
}
Array stats::laplace::cdf(Operand x, Operand loc, Operand scale) {
  return laplace_below(standardised("cdf", x, loc, scale).z);
}
Array stats::laplace::logcdf(Operand x, Operand loc, Operand scale) {
  return laplace_log_below(standardised("logcdf", x, loc, scale).z);
}
Array stats::laplace::sf(Operand x, Operand loc, Operand scale) {
  return laplace_below(-standardised("sf", x, loc, scale).z);
}
Array stats::laplace::logsf(Operand x, Operand loc, Operand scale) {
  return laplace_log_below(-standardised("logsf", x, loc, scale).z);
}
Array stats::laplace::ppf(Operand q, Operand loc, Operand scale) {
  return quantile("ppf", q, loc, scale, laplace_quantile);
}
Array stats::laplace::isf(Operand q, Operand loc, Operand scale) {
  return quantile("isf", q, loc, scale, [](const Array& p) { return -laplace_quantile(p); });
}

// --- logistic: exp(-z) / (scale (1 + exp(-z))^2) -------------------------------------------------

Array stats::logistic::logpdf(Operand x, Operand loc, Operand scale) {
  const auto [z, width, _] = standardised("logpdf", x, loc, scale);
  const Array size = lax::abs(z);
  return -size - lax::log1p(lax::exp(-size)) * 2 - lax::log(width);
}
Array stats::logistic::pdf(Operand x, Operand loc, Operand scale) {
  return lax::exp(logpdf(x, loc, scale));
}
Array stats::logistic::cdf(Operand x, Operand loc, Operand scale) {
  return lax::logistic(standardised("cdf", x, loc, scale).z);
}
Array stats::logistic::logcdf(Operand x, Operand loc, Operand scale) {
  return -softplus(-standardised("logcdf", x, loc, scale).z);
}
Array stats::logistic::sf(Operand x, Operand loc, Operand scale) {
  return lax::logistic(-standardised("sf", x, loc, scale).z);
}
Array stats::logistic::logsf(Operand x, Operand loc, Operand scale) {
  return -softplus(standardised("logsf", x, loc, scale).z);
}
Array stats::logistic::ppf(Operand q, Operand loc, Operand scale) {
  return quantile("ppf", q, loc, scale, [](const Array& p) { return special::logit(p); });
}
Array stats::logistic::isf(Operand q, Operand loc, Operand scale) {
  return quantile("isf", q, loc, scale, [](const Array& p) { return -special::logit(p); });
}

// --- Gumbel's, of the largest: exp(-exp(-z)), and of the smallest: the mirror image --------------

Array stats::gumbel_r::logpdf(Operand x, Operand loc, Operand scale) {
  const auto [z, width, _] = standardised("logpdf", x, loc, scale);
  return -(z + lax::exp(-z)) - lax::log(width);
}
Array stats::gumbel_r::pdf(Operand x, Operand loc, Operand scale) {
  return lax::exp(logpdf(x, loc, scale));
}
Array stats::gumbel_r::cdf(Operand x, Operand loc, Operand scale) {
  return lax::exp(logcdf(x, loc, scale));
}
Array stats::gumbel_r::logcdf(Operand x, Operand loc, Operand scale) {
  return -lax::exp(-standardised("logcdf", x, loc, scale).z);
}
Array stats::gumbel_r::sf(Operand x, Operand loc, Operand scale) {
  return -lax::expm1(logcdf(x, loc, scale));
}
Array stats::gumbel_r::logsf(Operand x, Operand loc, Operand scale) {
  return log_one_minus_exp(-logcdf(x, loc, scale));
}
Array stats::gumbel_r::ppf(Operand q, Operand loc, Operand scale) {
  return quantile("ppf", q, loc, scale, [](const Array& p) { return -lax::log(-lax::log(p)); });
}
Array stats::gumbel_r::isf(Operand q, Operand loc, Operand scale) {
  return quantile("isf", q, loc, scale, [](const Array& p) { return -lax::log(-lax::log1p(-p)); });
}
Array stats::gumbel_l::logpdf(Operand x, Operand loc, Operand scale) {
  const auto [z, width, _] = standardised("logpdf", x, loc, scale);
  return z - lax::exp(z) - lax::log(width);
}
Array stats::gumbel_l::pdf(Operand x, Operand loc, Operand scale) {
  return lax::exp(logpdf(x, loc, scale));
}
Array stats::gumbel_l::cdf(Operand x, Operand loc, Operand scale) {
  return -lax::expm1(logsf(x, loc, scale));
}
Array stats::gumbel_l::logcdf(Operand x, Operand loc, Operand scale) {
  return log_one_minus_exp(-logsf(x, loc, scale));
}
Array stats::gumbel_l::sf(Operand x, Operand loc, Operand scale) {
  return lax::exp(logsf(x, loc, scale));
}
Array stats::gumbel_l::logsf(Operand x, Operand loc, Operand scale) {
  return -lax::exp(standardised("logsf", x, loc, scale).z);
}
Array stats::gumbel_l::ppf(Operand p, Operand loc, Operand scale) {
  return quantile("ppf", p, loc, scale, [](const Array& p) { return lax::log(-lax::log1p(-p)); });
}
Array stats::gumbel_l::isf(Operand p, Operand loc, Operand scale) {
  return quantile("isf", p, loc, scale, [](const Array& p) { return lax::log(-lax::log(p)); });
}

// --- Pareto's: b / z^(b + 1) for z >= 1 ----------------------------------------------------------

namespace {
struct Pareto {
  Array b, log_z, scale, inside;
};
Pareto pareto_of(std::string_view function, Operand x, Operand b, Operand loc, Operand scale) {
  const auto [z, width, shape] = standardised(function, x, loc, scale, {b});
  return {shape[0], lax::log(numpy::maximum(z, 1)), width, z >= 1};
}
Array pareto_quantile(std::string_view function, const Array& logarithm, const Array& q, Operand b,
                      Operand loc, Operand scale) {
  const Arrays all = floats(function, {q, b, loc, scale});
  const Array z = lax::exp(numpy::divide(-logarithm, all[1]));
  return all[2] + all[3] * numpy::where(numpy::isnan(probability(all[0])), NAN, z);
}
}  // namespace
Array stats::pareto::logpdf(Operand x, Operand b, Operand loc, Operand scale) {
  const Pareto p = pareto_of("logpdf", x, b, loc, scale);
  return within(p.inside, lax::log(p.b) - (p.b + 1) * p.log_z - lax::log(p.scale), -INFINITY);
}
Array stats::pareto::pdf(Operand x, Operand b, Operand loc, Operand scale) {
  return lax::exp(logpdf(x, b, loc, scale));
}
Array stats::pareto::cdf(Operand x, Operand b, Operand loc, Operand scale) {
  return -lax::expm1(logsf(x, b, loc, scale));
}
Array stats::pareto::logcdf(Operand x, Operand b, Operand loc, Operand scale) {
  return log_one_minus_exp(-logsf(x, b, loc, scale));
}
Array stats::pareto::sf(Operand x, Operand b, Operand loc, Operand scale) {
  return lax::exp(logsf(x, b, loc, scale));
}
Array stats::pareto::logsf(Operand x, Operand b, Operand loc, Operand scale) {
  const Pareto p = pareto_of("logsf", x, b, loc, scale);
  return -p.b * p.log_z;
}
Array stats::pareto::ppf(Operand q, Operand b, Operand loc, Operand scale) {
  const Array p = floats("ppf", {q})[0];
  return pareto_quantile("ppf", lax::log1p(-p), p, b, loc, scale);
}
Array stats::pareto::isf(Operand q, Operand b, Operand loc, Operand scale) {
  const Array p = floats("isf", {q})[0];
  return pareto_quantile("isf", lax::log(p), p, b, loc, scale);
}

}  // namespace scipy
}  // namespace plait
