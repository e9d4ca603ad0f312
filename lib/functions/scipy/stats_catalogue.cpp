// The catalogue of plait.scipy.stats' distributions.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/scipy_stats.h>

#include "functions/functions.h"

namespace plait {
namespace {

namespace stats = scipy::stats;
[[maybe_unused]] const FunctionInfo* const stats_functions[] = {
    function("scipy.stats.norm", "logpdf(x, loc=0, scale=1)",
             "The logarithm of the density, at x, of the normal distribution with mean loc and "
             "deviation scale; arguments broadcast.",
             &stats::norm::logpdf),
    function("scipy.stats.norm", "pdf(x, loc=0, scale=1)",
             "The density, at x, of the normal distribution with mean loc and deviation scale; "
             "arguments broadcast.",
             &stats::norm::pdf),
    function("scipy.stats.norm", "cdf(x, loc=0, scale=1)",
             "The probability of at most x in the normal distribution with mean loc and deviation "
             "scale; arguments broadcast.",
             &stats::norm::cdf),
    function("scipy.stats.norm", "logcdf(x, loc=0, scale=1)",
             "The logarithm of the probability of at most x in the normal distribution with mean "
             "loc and deviation scale; arguments broadcast.",
             &stats::norm::logcdf),
    function("scipy.stats.norm", "sf(x, loc=0, scale=1)",
             "The probability of more than x in the normal distribution with mean loc and "
             "deviation scale; arguments broadcast.",
             &stats::norm::sf),
    function("scipy.stats.norm", "logsf(x, loc=0, scale=1)",
             "The logarithm of the probability of more than x in the normal distribution with mean "
             "loc and deviation scale; arguments broadcast.",
             &stats::norm::logsf),
    function("scipy.stats.norm", "ppf(q, loc=0, scale=1)",
             "The value below which lies the probability q, in the normal distribution with mean "
             "loc and deviation scale; arguments broadcast.",
             &stats::norm::ppf),
    function("scipy.stats.norm", "isf(q, loc=0, scale=1)",
             "The value above which lies the probability q, in the normal distribution with mean "
             "loc and deviation scale; arguments broadcast.",
             &stats::norm::isf),
    function("scipy.stats.uniform", "logpdf(x, loc=0, scale=1)",
             "The logarithm of the density, at x, of the uniform distribution on [loc, loc + "
             "scale]; arguments broadcast.",
             &stats::uniform::logpdf),
    function("scipy.stats.uniform", "pdf(x, loc=0, scale=1)",
             "The density, at x, of the uniform distribution on [loc, loc + scale]; arguments "
             "broadcast.",
             &stats::uniform::pdf),
    function("scipy.stats.uniform", "cdf(x, loc=0, scale=1)",
             "The probability of at most x in the uniform distribution on [loc, loc + scale]; "
             "arguments broadcast.",
             &stats::uniform::cdf),
    function("scipy.stats.uniform", "logcdf(x, loc=0, scale=1)",
             "The logarithm of the probability of at most x in the uniform distribution on [loc, "
             "loc + scale]; arguments broadcast.",
             &stats::uniform::logcdf),
    function("scipy.stats.uniform", "sf(x, loc=0, scale=1)",
             "The probability of more than x in the uniform distribution on [loc, loc + scale]; "
             "arguments broadcast.",
             &stats::uniform::sf),
    function("scipy.stats.uniform", "logsf(x, loc=0, scale=1)",
             "The logarithm of the probability of more than x in the uniform distribution on [loc, "
             "loc + scale]; arguments broadcast.",
             &stats::uniform::logsf),
    function("scipy.stats.uniform", "ppf(q, loc=0, scale=1)",
             "The value below which lies the probability q, in the uniform distribution on [loc, "
             "loc + scale]; arguments broadcast.",
             &stats::uniform::ppf),
    function("scipy.stats.uniform", "isf(q, loc=0, scale=1)",
             "The value above which lies the probability q, in the uniform distribution on [loc, "
             "loc + scale]; arguments broadcast.",
             &stats::uniform::isf),
    function("scipy.stats.expon", "logpdf(x, loc=0, scale=1)",
             "The logarithm of the density, at x, of the exponential distribution of mean scale "
             "above loc; arguments broadcast.",
             &stats::expon::logpdf),
    function("scipy.stats.expon", "pdf(x, loc=0, scale=1)",
             "The density, at x, of the exponential distribution of mean scale above loc; "
             "arguments broadcast.",
             &stats::expon::pdf),
    function("scipy.stats.expon", "cdf(x, loc=0, scale=1)",
             "The probability of at most x in the exponential distribution of mean scale above "
             "loc; arguments broadcast.",
             &stats::expon::cdf),
    function("scipy.stats.expon", "logcdf(x, loc=0, scale=1)",
             "The logarithm of the probability of at most x in the exponential distribution of "
             "mean scale above loc; arguments broadcast.",
             &stats::expon::logcdf),
    function("scipy.stats.expon", "sf(x, loc=0, scale=1)",
             "The probability of more than x in the exponential distribution of mean scale above "
             "loc; arguments broadcast.",
             &stats::expon::sf),
    function("scipy.stats.expon", "logsf(x, loc=0, scale=1)",
             "The logarithm of the probability of more than x in the exponential distribution of "
             "mean scale above loc; arguments broadcast.",
             &stats::expon::logsf),
    function("scipy.stats.expon", "ppf(q, loc=0, scale=1)",
             "The value below which lies the probability q, in the exponential distribution of "
             "mean scale above loc; arguments broadcast.",
             &stats::expon::ppf),
    function("scipy.stats.expon", "isf(q, loc=0, scale=1)",
             "The value above which lies the probability q, in the exponential distribution of "
             "mean scale above loc; arguments broadcast.",
             &stats::expon::isf),
    function("scipy.stats.cauchy", "logpdf(x, loc=0, scale=1)",
             "The logarithm of the density, at x, of the Cauchy distribution; arguments broadcast.",
             &stats::cauchy::logpdf),
    function("scipy.stats.cauchy", "pdf(x, loc=0, scale=1)",
             "The density, at x, of the Cauchy distribution; arguments broadcast.",
             &stats::cauchy::pdf),
    function("scipy.stats.cauchy", "cdf(x, loc=0, scale=1)",
             "The probability of at most x in the Cauchy distribution; arguments broadcast.",
             &stats::cauchy::cdf),
    function("scipy.stats.cauchy", "logcdf(x, loc=0, scale=1)",
             "The logarithm of the probability of at most x in the Cauchy distribution; arguments "
             "broadcast.",
             &stats::cauchy::logcdf),
    function("scipy.stats.cauchy", "sf(x, loc=0, scale=1)",
             "The probability of more than x in the Cauchy distribution; arguments broadcast.",
             &stats::cauchy::sf),
    function("scipy.stats.cauchy", "logsf(x, loc=0, scale=1)",
             "The logarithm of the probability of more than x in the Cauchy distribution; "
             "arguments broadcast.",
             &stats::cauchy::logsf),
    function("scipy.stats.cauchy", "ppf(q, loc=0, scale=1)",
             "The value below which lies the probability q, in the Cauchy distribution; arguments "
             "broadcast.",
             &stats::cauchy::ppf),
    function("scipy.stats.cauchy", "isf(q, loc=0, scale=1)",
             "The value above which lies the probability q, in the Cauchy distribution; arguments "
             "broadcast.",
             &stats::cauchy::isf),
    function(
        "scipy.stats.laplace", "logpdf(x, loc=0, scale=1)",
        "The logarithm of the density, at x, of the Laplace distribution; arguments broadcast.",
        &stats::laplace::logpdf),
    function("scipy.stats.laplace", "pdf(x, loc=0, scale=1)",
             "The density, at x, of the Laplace distribution; arguments broadcast.",
             &stats::laplace::pdf),
    function("scipy.stats.laplace", "cdf(x, loc=0, scale=1)",
             "The probability of at most x in the Laplace distribution; arguments broadcast.",
             &stats::laplace::cdf),
    function("scipy.stats.laplace", "logcdf(x, loc=0, scale=1)",
             "The logarithm of the probability of at most x in the Laplace distribution; arguments "
             "broadcast.",
             &stats::laplace::logcdf),
    function("scipy.stats.laplace", "sf(x, loc=0, scale=1)",
             "The probability of more than x in the Laplace distribution; arguments broadcast.",
             &stats::laplace::sf),
    function("scipy.stats.laplace", "logsf(x, loc=0, scale=1)",
             "The logarithm of the probability of more than x in the Laplace distribution; "
             "arguments broadcast.",
             &stats::laplace::logsf),
    function("scipy.stats.laplace", "ppf(q, loc=0, scale=1)",
             "The value below which lies the probability q, in the Laplace distribution; arguments "
             "broadcast.",
             &stats::laplace::ppf),
    function("scipy.stats.laplace", "isf(q, loc=0, scale=1)",
             "The value above which lies the probability q, in the Laplace distribution; arguments "
             "broadcast.",
             &stats::laplace::isf),
    function(
        "scipy.stats.logistic", "logpdf(x, loc=0, scale=1)",
        "The logarithm of the density, at x, of the logistic distribution; arguments broadcast.",
        &stats::logistic::logpdf),
    function("scipy.stats.logistic", "pdf(x, loc=0, scale=1)",
             "The density, at x, of the logistic distribution; arguments broadcast.",
             &stats::logistic::pdf),
    function("scipy.stats.logistic", "cdf(x, loc=0, scale=1)",
             "The probability of at most x in the logistic distribution; arguments broadcast.",
             &stats::logistic::cdf),
    function("scipy.stats.logistic", "logcdf(x, loc=0, scale=1)",
             "The logarithm of the probability of at most x in the logistic distribution; "
             "arguments broadcast.",
             &stats::logistic::logcdf),
    function("scipy.stats.logistic", "sf(x, loc=0, scale=1)",
             "The probability of more than x in the logistic distribution; arguments broadcast.",
             &stats::logistic::sf),
    function("scipy.stats.logistic", "logsf(x, loc=0, scale=1)",
             "The logarithm of the probability of more than x in the logistic distribution; "
             "arguments broadcast.",
             &stats::logistic::logsf),
    function("scipy.stats.logistic", "ppf(q, loc=0, scale=1)",
             "The value below which lies the probability q, in the logistic distribution; "
             "arguments broadcast.",
             &stats::logistic::ppf),
    function("scipy.stats.logistic", "isf(q, loc=0, scale=1)",
             "The value above which lies the probability q, in the logistic distribution; "
             "arguments broadcast.",
             &stats::logistic::isf),
    function("scipy.stats.gumbel_r", "logpdf(x, loc=0, scale=1)",
             "The logarithm of the density, at x, of the Gumbel distribution of largest values; "
             "arguments broadcast.",
             &stats::gumbel_r::logpdf),
    function(
        "scipy.stats.gumbel_r", "pdf(x, loc=0, scale=1)",
        "The density, at x, of the Gumbel distribution of largest values; arguments broadcast.",
        &stats::gumbel_r::pdf),
    function("scipy.stats.gumbel_r", "cdf(x, loc=0, scale=1)",
             "The probability of at most x in the Gumbel distribution of largest values; arguments "
             "broadcast.",
             &stats::gumbel_r::cdf),
    function("scipy.stats.gumbel_r", "logcdf(x, loc=0, scale=1)",
             "The logarithm of the probability of at most x in the Gumbel distribution of largest "
             "values; arguments broadcast.",
             &stats::gumbel_r::logcdf),
    function("scipy.stats.gumbel_r", "sf(x, loc=0, scale=1)",
             "The probability of more than x in the Gumbel distribution of largest values; "
             "arguments broadcast.",
             &stats::gumbel_r::sf),
    function("scipy.stats.gumbel_r", "logsf(x, loc=0, scale=1)",
             "The logarithm of the probability of more than x in the Gumbel distribution of "
             "largest values; arguments broadcast.",
             &stats::gumbel_r::logsf),
    function("scipy.stats.gumbel_r", "ppf(q, loc=0, scale=1)",
             "The value below which lies the probability q, in the Gumbel distribution of largest "
             "values; arguments broadcast.",
             &stats::gumbel_r::ppf),
    function("scipy.stats.gumbel_r", "isf(q, loc=0, scale=1)",
             "The value above which lies the probability q, in the Gumbel distribution of largest "
             "values; arguments broadcast.",
             &stats::gumbel_r::isf),
    function("scipy.stats.gumbel_l", "logpdf(x, loc=0, scale=1)",
             "The logarithm of the density, at x, of the Gumbel distribution of smallest values; "
             "arguments broadcast.",
             &stats::gumbel_l::logpdf),
    function(
        "scipy.stats.gumbel_l", "pdf(x, loc=0, scale=1)",
        "The density, at x, of the Gumbel distribution of smallest values; arguments broadcast.",
        &stats::gumbel_l::pdf),
    function("scipy.stats.gumbel_l", "cdf(x, loc=0, scale=1)",
             "The probability of at most x in the Gumbel distribution of smallest values; "
             "arguments broadcast.",
             &stats::gumbel_l::cdf),
    function("scipy.stats.gumbel_l", "logcdf(x, loc=0, scale=1)",
             "The logarithm of the probability of at most x in the Gumbel distribution of smallest "
             "values; arguments broadcast.",
             &stats::gumbel_l::logcdf),
    function("scipy.stats.gumbel_l", "sf(x, loc=0, scale=1)",
             "The probability of more than x in the Gumbel distribution of smallest values; "
             "arguments broadcast.",
             &stats::gumbel_l::sf),
    function("scipy.stats.gumbel_l", "logsf(x, loc=0, scale=1)",
             "The logarithm of the probability of more than x in the Gumbel distribution of "
             "smallest values; arguments broadcast.",
             &stats::gumbel_l::logsf),
    function("scipy.stats.gumbel_l", "ppf(p, loc=0, scale=1)",
             "The value below which lies the probability p, in the Gumbel distribution of smallest "
             "values; arguments broadcast.",
             &stats::gumbel_l::ppf),
    function("scipy.stats.gumbel_l", "isf(p, loc=0, scale=1)",
             "The value above which lies the probability p, in the Gumbel distribution of smallest "
             "values; arguments broadcast.",
             &stats::gumbel_l::isf),
    function("scipy.stats.pareto", "logpdf(x, b, loc=0, scale=1)",
             "The logarithm of the density, at x, of the Pareto distribution of exponent b; "
             "arguments broadcast.",
             &stats::pareto::logpdf),
    function("scipy.stats.pareto", "pdf(x, b, loc=0, scale=1)",
             "The density, at x, of the Pareto distribution of exponent b; arguments broadcast.",
             &stats::pareto::pdf),
    function("scipy.stats.pareto", "cdf(x, b, loc=0, scale=1)",
             "The probability of at most x in the Pareto distribution of exponent b; arguments "
             "broadcast.",
             &stats::pareto::cdf),
    function("scipy.stats.pareto", "logcdf(x, b, loc=0, scale=1)",
             "The logarithm of the probability of at most x in the Pareto distribution of exponent "
             "b; arguments broadcast.",
             &stats::pareto::logcdf),
    function("scipy.stats.pareto", "sf(x, b, loc=0, scale=1)",
             "The probability of more than x in the Pareto distribution of exponent b; arguments "
             "broadcast.",
             &stats::pareto::sf),
    function("scipy.stats.pareto", "logsf(x, b, loc=0, scale=1)",
             "The logarithm of the probability of more than x in the Pareto distribution of "
             "exponent b; arguments broadcast.",
             &stats::pareto::logsf),
    function("scipy.stats.pareto", "ppf(q, b, loc=0, scale=1)",
             "The value below which lies the probability q, in the Pareto distribution of exponent "
             "b; arguments broadcast.",
             &stats::pareto::ppf),
    function("scipy.stats.pareto", "isf(q, b, loc=0, scale=1)",
             "The value above which lies the probability q, in the Pareto distribution of exponent "
             "b; arguments broadcast.",
             &stats::pareto::isf),
};

}  // namespace
}  // namespace plait
