// plait::scipy::stats: distributions under SciPy's names, a namespace each; docs are in the
// catalogue.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

namespace plait::scipy::stats {

// The normal distribution with mean loc and deviation scale.
namespace norm {

Array logpdf(Operand x, Operand loc = 0, Operand scale = 1);
Array pdf(Operand x, Operand loc = 0, Operand scale = 1);
Array cdf(Operand x, Operand loc = 0, Operand scale = 1);
Array logcdf(Operand x, Operand loc = 0, Operand scale = 1);
Array sf(Operand x, Operand loc = 0, Operand scale = 1);
Array logsf(Operand x, Operand loc = 0, Operand scale = 1);
Array ppf(Operand q, Operand loc = 0, Operand scale = 1);
Array isf(Operand q, Operand loc = 0, Operand scale = 1);

}  // namespace norm

// The uniform distribution on [loc, loc + scale].
namespace uniform {

Array logpdf(Operand x, Operand loc = 0, Operand scale = 1);
Array pdf(Operand x, Operand loc = 0, Operand scale = 1);
Array cdf(Operand x, Operand loc = 0, Operand scale = 1);
Array logcdf(Operand x, Operand loc = 0, Operand scale = 1);
Array sf(Operand x, Operand loc = 0, Operand scale = 1);
Array logsf(Operand x, Operand loc = 0, Operand scale = 1);
Array ppf(Operand q, Operand loc = 0, Operand scale = 1);
Array isf(Operand q, Operand loc = 0, Operand scale = 1);

}  // namespace uniform

// The exponential distribution of mean scale above loc.
namespace expon {

Array logpdf(Operand x, Operand loc = 0, Operand scale = 1);
Array pdf(Operand x, Operand loc = 0, Operand scale = 1);
Array cdf(Operand x, Operand loc = 0, Operand scale = 1);
Array logcdf(Operand x, Operand loc = 0, Operand scale = 1);
Array sf(Operand x, Operand loc = 0, Operand scale = 1);
Array logsf(Operand x, Operand loc = 0, Operand scale = 1);
Array ppf(Operand q, Operand loc = 0, Operand scale = 1);
Array isf(Operand q, Operand loc = 0, Operand scale = 1);

}  // namespace expon

// The Cauchy distribution.
namespace cauchy {

Array logpdf(Operand x, Operand loc = 0, Operand scale = 1);
Array pdf(Operand x, Operand loc = 0, Operand scale = 1);
Array cdf(Operand x, Operand loc = 0, Operand scale = 1);
Array logcdf(Operand x, Operand loc = 0, Operand scale = 1);
Array sf(Operand x, Operand loc = 0, Operand scale = 1);
Array logsf(Operand x, Operand loc = 0, Operand scale = 1);
Array ppf(Operand q, Operand loc = 0, Operand scale = 1);
Array isf(Operand q, Operand loc = 0, Operand scale = 1);

}  // namespace cauchy

// The Laplace distribution.
namespace laplace {

Array logpdf(Operand x, Operand loc = 0, Operand scale = 1);
Array pdf(Operand x, Operand loc = 0, Operand scale = 1);
Array cdf(Operand x, Operand loc = 0, Operand scale = 1);
Array logcdf(Operand x, Operand loc = 0, Operand scale = 1);
Array sf(Operand x, Operand loc = 0, Operand scale = 1);
Array logsf(Operand x, Operand loc = 0, Operand scale = 1);
Array ppf(Operand q, Operand loc = 0, Operand scale = 1);
Array isf(Operand q, Operand loc = 0, Operand scale = 1);

}  // namespace laplace

// The logistic distribution.
namespace logistic {

Array logpdf(Operand x, Operand loc = 0, Operand scale = 1);
Array pdf(Operand x, Operand loc = 0, Operand scale = 1);
Array cdf(Operand x, Operand loc = 0, Operand scale = 1);
Array logcdf(Operand x, Operand loc = 0, Operand scale = 1);
Array sf(Operand x, Operand loc = 0, Operand scale = 1);
Array logsf(Operand x, Operand loc = 0, Operand scale = 1);
Array ppf(Operand q, Operand loc = 0, Operand scale = 1);
Array isf(Operand q, Operand loc = 0, Operand scale = 1);

}  // namespace logistic

// The Gumbel distribution of largest values.
namespace gumbel_r {

Array logpdf(Operand x, Operand loc = 0, Operand scale = 1);
Array pdf(Operand x, Operand loc = 0, Operand scale = 1);
Array cdf(Operand x, Operand loc = 0, Operand scale = 1);
Array logcdf(Operand x, Operand loc = 0, Operand scale = 1);
Array sf(Operand x, Operand loc = 0, Operand scale = 1);
Array logsf(Operand x, Operand loc = 0, Operand scale = 1);
Array ppf(Operand q, Operand loc = 0, Operand scale = 1);
Array isf(Operand q, Operand loc = 0, Operand scale = 1);

}  // namespace gumbel_r

// The Gumbel distribution of smallest values.
namespace gumbel_l {

Array logpdf(Operand x, Operand loc = 0, Operand scale = 1);
Array pdf(Operand x, Operand loc = 0, Operand scale = 1);
Array cdf(Operand x, Operand loc = 0, Operand scale = 1);
Array logcdf(Operand x, Operand loc = 0, Operand scale = 1);
Array sf(Operand x, Operand loc = 0, Operand scale = 1);
Array logsf(Operand x, Operand loc = 0, Operand scale = 1);
Array ppf(Operand p, Operand loc = 0, Operand scale = 1);
Array isf(Operand p, Operand loc = 0, Operand scale = 1);

}  // namespace gumbel_l

// The Pareto distribution of exponent b.
namespace pareto {

Array logpdf(Operand x, Operand b, Operand loc = 0, Operand scale = 1);
Array pdf(Operand x, Operand b, Operand loc = 0, Operand scale = 1);
Array cdf(Operand x, Operand b, Operand loc = 0, Operand scale = 1);
Array logcdf(Operand x, Operand b, Operand loc = 0, Operand scale = 1);
Array sf(Operand x, Operand b, Operand loc = 0, Operand scale = 1);
Array logsf(Operand x, Operand b, Operand loc = 0, Operand scale = 1);
Array ppf(Operand q, Operand b, Operand loc = 0, Operand scale = 1);
Array isf(Operand q, Operand b, Operand loc = 0, Operand scale = 1);

}  // namespace pareto

// The gamma distribution of shape a.
namespace gamma {

Array logpdf(Operand x, Operand a, Operand loc = 0, Operand scale = 1);
Array pdf(Operand x, Operand a, Operand loc = 0, Operand scale = 1);
Array cdf(Operand x, Operand a, Operand loc = 0, Operand scale = 1);
Array logcdf(Operand x, Operand a, Operand loc = 0, Operand scale = 1);
Array sf(Operand x, Operand a, Operand loc = 0, Operand scale = 1);
Array logsf(Operand x, Operand a, Operand loc = 0, Operand scale = 1);

}  // namespace gamma

// The chi-squared distribution of df degrees of freedom.
namespace chi2 {

Array logpdf(Operand x, Operand df, Operand loc = 0, Operand scale = 1);
Array pdf(Operand x, Operand df, Operand loc = 0, Operand scale = 1);
Array cdf(Operand x, Operand df, Operand loc = 0, Operand scale = 1);
Array logcdf(Operand x, Operand df, Operand loc = 0, Operand scale = 1);
Array sf(Operand x, Operand df, Operand loc = 0, Operand scale = 1);
Array logsf(Operand x, Operand df, Operand loc = 0, Operand scale = 1);

}  // namespace chi2

// The beta distribution of shapes a and b.
namespace beta {

Array logpdf(Operand x, Operand a, Operand b, Operand loc = 0, Operand scale = 1);
Array pdf(Operand x, Operand a, Operand b, Operand loc = 0, Operand scale = 1);
Array cdf(Operand x, Operand a, Operand b, Operand loc = 0, Operand scale = 1);
Array logcdf(Operand x, Operand a, Operand b, Operand loc = 0, Operand scale = 1);
Array sf(Operand x, Operand a, Operand b, Operand loc = 0, Operand scale = 1);
Array logsf(Operand x, Operand a, Operand b, Operand loc = 0, Operand scale = 1);

}  // namespace beta

// The Student's t distribution of df degrees of freedom.
namespace t {

Array logpdf(Operand x, Operand df, Operand loc = 0, Operand scale = 1);
Array pdf(Operand x, Operand df, Operand loc = 0, Operand scale = 1);
Array cdf(Operand x, Operand df, Operand loc = 0, Operand scale = 1);
Array logcdf(Operand x, Operand df, Operand loc = 0, Operand scale = 1);
Array sf(Operand x, Operand df, Operand loc = 0, Operand scale = 1);
Array logsf(Operand x, Operand df, Operand loc = 0, Operand scale = 1);

}  // namespace t

// The generalized normal distribution of exponent beta.
namespace gennorm {

Array logpdf(Operand x, Operand beta);
Array pdf(Operand x, Operand beta);
Array cdf(Operand x, Operand beta);
Array logcdf(Operand x, Operand beta);
Array sf(Operand x, Operand beta);
Array logsf(Operand x, Operand beta);

}  // namespace gennorm

// The standard normal distribution cut to [a, b], moved by loc and widened by scale.
namespace truncnorm {

Array logpdf(Operand x, Operand a, Operand b, Operand loc = 0, Operand scale = 1);
Array pdf(Operand x, Operand a, Operand b, Operand loc = 0, Operand scale = 1);
Array logcdf(Operand x, Operand a, Operand b, Operand loc = 0, Operand scale = 1);
Array cdf(Operand x, Operand a, Operand b, Operand loc = 0, Operand scale = 1);
Array logsf(Operand x, Operand a, Operand b, Operand loc = 0, Operand scale = 1);
Array sf(Operand x, Operand a, Operand b, Operand loc = 0, Operand scale = 1);

}  // namespace truncnorm

// The von Mises distribution of concentration kappa.
namespace vonmises {

Array logpdf(Operand x, Operand kappa);
Array pdf(Operand x, Operand kappa);

}  // namespace vonmises

// The wrapped Cauchy distribution of parameter c on [0, 2 pi].
namespace wrapcauchy {

Array logpdf(Operand x, Operand c);
Array pdf(Operand x, Operand c);

}  // namespace wrapcauchy

// The Bernoulli distribution of probability p.
namespace bernoulli {

Array logpmf(Operand k, Operand p, Operand loc = 0);
Array pmf(Operand k, Operand p, Operand loc = 0);
Array cdf(Operand k, Operand p);
Array ppf(Operand q, Operand p);

}  // namespace bernoulli

// The binomial distribution of n trials of probability p.
namespace binom {

Array logpmf(Operand k, Operand n, Operand p, Operand loc = 0);
Array pmf(Operand k, Operand n, Operand p, Operand loc = 0);

}  // namespace binom

// The negative binomial distribution: of failures before n successes of probability p.
namespace nbinom {

Array logpmf(Operand k, Operand n, Operand p, Operand loc = 0);
Array pmf(Operand k, Operand n, Operand p, Operand loc = 0);

}  // namespace nbinom

// The beta-binomial distribution of n trials and shapes a and b.
namespace betabinom {

Array logpmf(Operand k, Operand n, Operand a, Operand b, Operand loc = 0);
Array pmf(Operand k, Operand n, Operand a, Operand b, Operand loc = 0);

}  // namespace betabinom

// The geometric distribution of trials until the first success of probability p.
namespace geom {

Array logpmf(Operand k, Operand p, Operand loc = 0);
Array pmf(Operand k, Operand p, Operand loc = 0);

}  // namespace geom

// The Poisson distribution of mean mu.
namespace poisson {

Array logpmf(Operand k, Operand mu, Operand loc = 0);
Array pmf(Operand k, Operand mu, Operand loc = 0);
Array cdf(Operand k, Operand mu, Operand loc = 0);
Array entropy(Operand mu, Operand loc = 0);

}  // namespace poisson

// The Dirichlet distribution of the vector alpha; the first axis of x holds the elements, of which
// the last may be left out.
namespace dirichlet {

Array logpdf(Operand x, Operand alpha);
Array pdf(Operand x, Operand alpha);

}  // namespace dirichlet

// The multinomial distribution of n trials of probabilities p, along the last axes.
namespace multinomial {

Array logpmf(Operand x, Operand n, Operand p);
Array pmf(Operand x, Operand n, Operand p);

}  // namespace multinomial

// The normal distribution of vectors with a mean and a covariance matrix; the leading axes
// broadcast.
namespace multivariate_normal {

Array logpdf(Operand x, Operand mean, Operand cov, const std::optional<bool>& allow_singular = {});
Array pdf(Operand x, Operand mean, Operand cov);

}  // namespace multivariate_normal

// Ranks from 1; equal elements get the average, the min or max, one rank without gaps (dense), or
// their order (ordinal).
Array rankdata(Operand a, const std::string& method = "average",
               const std::optional<int>& axis = {}, const std::string& nan_policy = "propagate");
// The most frequent element, and how often it occurs.
std::pair<Array, Array> mode(Operand a, const std::optional<int>& axis = 0,
                             const std::string& nan_policy = "propagate", bool keepdims = false);
// The standard error of the mean.
Array sem(Operand a, const std::optional<int>& axis = 0, int ddof = 1,
          const std::string& nan_policy = "propagate", bool keepdims = false);

}  // namespace plait::scipy::stats
