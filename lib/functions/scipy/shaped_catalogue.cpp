// The catalogue of plait.scipy.stats' distributions of shapes, integers and vectors.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/scipy_stats.h>

#include "functions/functions.h"

namespace plait {
namespace {

namespace stats = scipy::stats;
[[maybe_unused]] const FunctionInfo* const shaped_functions[] = {
    function("scipy.stats.gamma", "logpdf(x, a, loc=0, scale=1)",
             "The logarithm of the density, at x, of the gamma distribution of shape a; arguments "
             "broadcast.",
             &stats::gamma::logpdf),
    function("scipy.stats.gamma", "pdf(x, a, loc=0, scale=1)",
             "The density, at x, of the gamma distribution of shape a; arguments broadcast.",
             &stats::gamma::pdf),
    function(
        "scipy.stats.gamma", "cdf(x, a, loc=0, scale=1)",
        "The probability of at most x in the gamma distribution of shape a; arguments broadcast.",
        &stats::gamma::cdf),
    function("scipy.stats.gamma", "logcdf(x, a, loc=0, scale=1)",
             "The logarithm of the probability of at most x in the gamma distribution of shape a; "
             "arguments broadcast.",
             &stats::gamma::logcdf),
    function(
        "scipy.stats.gamma", "sf(x, a, loc=0, scale=1)",
        "The probability of more than x in the gamma distribution of shape a; arguments broadcast.",
        &stats::gamma::sf),
    function("scipy.stats.gamma", "logsf(x, a, loc=0, scale=1)",
             "The logarithm of the probability of more than x in the gamma distribution of shape "
             "a; arguments broadcast.",
             &stats::gamma::logsf),
    function("scipy.stats.chi2", "logpdf(x, df, loc=0, scale=1)",
             "The logarithm of the density, at x, of the chi-squared distribution of df degrees of "
             "freedom; arguments broadcast.",
             &stats::chi2::logpdf),
    function("scipy.stats.chi2", "pdf(x, df, loc=0, scale=1)",
             "The density, at x, of the chi-squared distribution of df degrees of freedom; "
             "arguments broadcast.",
             &stats::chi2::pdf),
    function("scipy.stats.chi2", "cdf(x, df, loc=0, scale=1)",
             "The probability of at most x in the chi-squared distribution of df degrees of "
             "freedom; arguments broadcast.",
             &stats::chi2::cdf),
    function("scipy.stats.chi2", "logcdf(x, df, loc=0, scale=1)",
             "The logarithm of the probability of at most x in the chi-squared distribution of df "
             "degrees of freedom; arguments broadcast.",
             &stats::chi2::logcdf),
    function("scipy.stats.chi2", "sf(x, df, loc=0, scale=1)",
             "The probability of more than x in the chi-squared distribution of df degrees of "
             "freedom; arguments broadcast.",
             &stats::chi2::sf),
    function("scipy.stats.chi2", "logsf(x, df, loc=0, scale=1)",
             "The logarithm of the probability of more than x in the chi-squared distribution of "
             "df degrees of freedom; arguments broadcast.",
             &stats::chi2::logsf),
    function("scipy.stats.beta", "logpdf(x, a, b, loc=0, scale=1)",
             "The logarithm of the density, at x, of the beta distribution of shapes a and b; "
             "arguments broadcast.",
             &stats::beta::logpdf),
    function("scipy.stats.beta", "pdf(x, a, b, loc=0, scale=1)",
             "The density, at x, of the beta distribution of shapes a and b; arguments broadcast.",
             &stats::beta::pdf),
    function("scipy.stats.beta", "cdf(x, a, b, loc=0, scale=1)",
             "The probability of at most x in the beta distribution of shapes a and b; arguments "
             "broadcast.",
             &stats::beta::cdf),
    function("scipy.stats.beta", "logcdf(x, a, b, loc=0, scale=1)",
             "The logarithm of the probability of at most x in the beta distribution of shapes a "
             "and b; arguments broadcast.",
             &stats::beta::logcdf),
    function("scipy.stats.beta", "sf(x, a, b, loc=0, scale=1)",
             "The probability of more than x in the beta distribution of shapes a and b; arguments "
             "broadcast.",
             &stats::beta::sf),
    function("scipy.stats.beta", "logsf(x, a, b, loc=0, scale=1)",
             "The logarithm of the probability of more than x in the beta distribution of shapes a "
             "and b; arguments broadcast.",
             &stats::beta::logsf),
    function("scipy.stats.t", "logpdf(x, df, loc=0, scale=1)",
             "The logarithm of the density, at x, of the Student's t distribution of df degrees of "
             "freedom; arguments broadcast.",
             &stats::t::logpdf),
    function("scipy.stats.t", "pdf(x, df, loc=0, scale=1)",
             "The density, at x, of the Student's t distribution of df degrees of freedom; "
             "arguments broadcast.",
             &stats::t::pdf),
    function("scipy.stats.t", "cdf(x, df, loc=0, scale=1)",
             "The probability of at most x in the Student's t distribution of df degrees of "
             "freedom; arguments broadcast.",
             &stats::t::cdf),
    function("scipy.stats.t", "logcdf(x, df, loc=0, scale=1)",
             "The logarithm of the probability of at most x in the Student's t distribution of df "
             "degrees of freedom; arguments broadcast.",
             &stats::t::logcdf),
    function("scipy.stats.t", "sf(x, df, loc=0, scale=1)",
             "The probability of more than x in the Student's t distribution of df degrees of "
             "freedom; arguments broadcast.",
             &stats::t::sf),
    function("scipy.stats.t", "logsf(x, df, loc=0, scale=1)",
             "The logarithm of the probability of more than x in the Student's t distribution of "
             "df degrees of freedom; arguments broadcast.",
             &stats::t::logsf),
    function("scipy.stats.gennorm", "logpdf(x, beta)",
             "The logarithm of the density, at x, of the generalized normal distribution of "
             "exponent beta; arguments broadcast.",
             &stats::gennorm::logpdf),
    function("scipy.stats.gennorm", "pdf(x, beta)",
             "The density, at x, of the generalized normal distribution of exponent beta; "
             "arguments broadcast.",
             &stats::gennorm::pdf),
    function("scipy.stats.gennorm", "cdf(x, beta)",
             "The probability of at most x in the generalized normal distribution of exponent "
             "beta; arguments broadcast.",
             &stats::gennorm::cdf),
    function("scipy.stats.gennorm", "logcdf(x, beta)",
             "The logarithm of the probability of at most x in the generalized normal distribution "
             "of exponent beta; arguments broadcast.",
             &stats::gennorm::logcdf),
    function("scipy.stats.gennorm", "sf(x, beta)",
             "The probability of more than x in the generalized normal distribution of exponent "
             "beta; arguments broadcast.",
             &stats::gennorm::sf),
    function("scipy.stats.gennorm", "logsf(x, beta)",
             "The logarithm of the probability of more than x in the generalized normal "
             "distribution of exponent beta; arguments broadcast.",
             &stats::gennorm::logsf),
    function("scipy.stats.truncnorm", "logpdf(x, a, b, loc=0, scale=1)",
             "The logarithm of the density, at x, of the standard normal distribution cut to [a, "
             "b], moved by loc and widened by scale; arguments broadcast.",
             &stats::truncnorm::logpdf),
    function("scipy.stats.truncnorm", "pdf(x, a, b, loc=0, scale=1)",
             "The density, at x, of the standard normal distribution cut to [a, b], moved by loc "
             "and widened by scale; arguments broadcast.",
             &stats::truncnorm::pdf),
    function("scipy.stats.truncnorm", "logcdf(x, a, b, loc=0, scale=1)",
             "The logarithm of the probability of at most x in the standard normal distribution "
             "cut to [a, b], moved by loc and widened by scale; arguments broadcast.",
             &stats::truncnorm::logcdf),
    function("scipy.stats.truncnorm", "cdf(x, a, b, loc=0, scale=1)",
             "The probability of at most x in the standard normal distribution cut to [a, b], "
             "moved by loc and widened by scale; arguments broadcast.",
             &stats::truncnorm::cdf),
    function("scipy.stats.truncnorm", "logsf(x, a, b, loc=0, scale=1)",
             "The logarithm of the probability of more than x in the standard normal distribution "
             "cut to [a, b], moved by loc and widened by scale; arguments broadcast.",
             &stats::truncnorm::logsf),
    function("scipy.stats.truncnorm", "sf(x, a, b, loc=0, scale=1)",
             "The probability of more than x in the standard normal distribution cut to [a, b], "
             "moved by loc and widened by scale; arguments broadcast.",
             &stats::truncnorm::sf),
    function("scipy.stats.vonmises", "logpdf(x, kappa)",
             "The logarithm of the density, at x, of the von Mises distribution of concentration "
             "kappa; arguments broadcast.",
             &stats::vonmises::logpdf),
    function("scipy.stats.vonmises", "pdf(x, kappa)",
             "The density, at x, of the von Mises distribution of concentration kappa; arguments "
             "broadcast.",
             &stats::vonmises::pdf),
    function("scipy.stats.wrapcauchy", "logpdf(x, c)",
             "The logarithm of the density, at x, of the wrapped Cauchy distribution of parameter "
             "c on [0, 2 pi]; arguments broadcast.",
             &stats::wrapcauchy::logpdf),
    function("scipy.stats.wrapcauchy", "pdf(x, c)",
             "The density, at x, of the wrapped Cauchy distribution of parameter c on [0, 2 pi]; "
             "arguments broadcast.",
             &stats::wrapcauchy::pdf),
    function("scipy.stats.bernoulli", "logpmf(k, p, loc=0)",
             "The logarithm of the probability of k in the Bernoulli distribution of probability "
             "p; arguments broadcast.",
             &stats::bernoulli::logpmf),
    function(
        "scipy.stats.bernoulli", "pmf(k, p, loc=0)",
        "The probability of k in the Bernoulli distribution of probability p; arguments broadcast.",
        &stats::bernoulli::pmf),
    function("scipy.stats.bernoulli", "cdf(k, p)",
             "The probability of at most k in the Bernoulli distribution of probability p; "
             "arguments broadcast.",
             &stats::bernoulli::cdf),
    function("scipy.stats.bernoulli", "ppf(q, p)",
             "The value below which lies the probability q, in the Bernoulli distribution of "
             "probability p; arguments broadcast.",
             &stats::bernoulli::ppf),
    function("scipy.stats.binom", "logpmf(k, n, p, loc=0)",
             "The logarithm of the probability of k in the binomial distribution of n trials of "
             "probability p; arguments broadcast.",
             &stats::binom::logpmf),
    function("scipy.stats.binom", "pmf(k, n, p, loc=0)",
             "The probability of k in the binomial distribution of n trials of probability p; "
             "arguments broadcast.",
             &stats::binom::pmf),
    function("scipy.stats.nbinom", "logpmf(k, n, p, loc=0)",
             "The logarithm of the probability of k in the negative binomial distribution: of "
             "failures before n successes of probability p; arguments broadcast.",
             &stats::nbinom::logpmf),
    function("scipy.stats.nbinom", "pmf(k, n, p, loc=0)",
             "The probability of k in the negative binomial distribution: of failures before n "
             "successes of probability p; arguments broadcast.",
             &stats::nbinom::pmf),
    function("scipy.stats.betabinom", "logpmf(k, n, a, b, loc=0)",
             "The logarithm of the probability of k in the beta-binomial distribution of n trials "
             "and shapes a and b; arguments broadcast.",
             &stats::betabinom::logpmf),
    function("scipy.stats.betabinom", "pmf(k, n, a, b, loc=0)",
             "The probability of k in the beta-binomial distribution of n trials and shapes a and "
             "b; arguments broadcast.",
             &stats::betabinom::pmf),
    function("scipy.stats.geom", "logpmf(k, p, loc=0)",
             "The logarithm of the probability of k in the geometric distribution of trials until "
             "the first success of probability p; arguments broadcast.",
             &stats::geom::logpmf),
    function("scipy.stats.geom", "pmf(k, p, loc=0)",
             "The probability of k in the geometric distribution of trials until the first success "
             "of probability p; arguments broadcast.",
             &stats::geom::pmf),
    function("scipy.stats.poisson", "logpmf(k, mu, loc=0)",
             "The logarithm of the probability of k in the Poisson distribution of mean mu; "
             "arguments broadcast.",
             &stats::poisson::logpmf),
    function("scipy.stats.poisson", "pmf(k, mu, loc=0)",
             "The probability of k in the Poisson distribution of mean mu; arguments broadcast.",
             &stats::poisson::pmf),
    function(
        "scipy.stats.poisson", "cdf(k, mu, loc=0)",
        "The probability of at most k in the Poisson distribution of mean mu; arguments broadcast.",
        &stats::poisson::cdf),
    function("scipy.stats.poisson", "entropy(mu, loc=0)",
             "The entropy, in nats, of the Poisson distribution of mean mu; arguments broadcast.",
             &stats::poisson::entropy),
    function("scipy.stats.dirichlet", "logpdf(x, alpha)",
             "The logarithm of the density, at x, of the Dirichlet distribution of the vector "
             "alpha; the first axis of x holds the elements, of which the last may be left out.",
             &stats::dirichlet::logpdf),
    function("scipy.stats.dirichlet", "pdf(x, alpha)",
             "The density, at x, of the Dirichlet distribution of the vector alpha; the first axis "
             "of x holds the elements, of which the last may be left out.",
             &stats::dirichlet::pdf),
    function("scipy.stats.multinomial", "logpmf(x, n, p)",
             "The logarithm of the probability of x in the multinomial distribution of n trials of "
             "probabilities p, along the last axes.",
             &stats::multinomial::logpmf),
    function("scipy.stats.multinomial", "pmf(x, n, p)",
             "The probability of x in the multinomial distribution of n trials of probabilities p, "
             "along the last axes.",
             &stats::multinomial::pmf),
    function("scipy.stats.multivariate_normal", "logpdf(x, mean, cov, allow_singular=None)",
             "The logarithm of the density, at x, of the normal distribution of vectors with a "
             "mean and a covariance matrix; the leading axes broadcast.",
             &stats::multivariate_normal::logpdf),
    function("scipy.stats.multivariate_normal", "pdf(x, mean, cov)",
             "The density, at x, of the normal distribution of vectors with a mean and a "
             "covariance matrix; the leading axes broadcast.",
             &stats::multivariate_normal::pdf),
};

}  // namespace
}  // namespace plait
