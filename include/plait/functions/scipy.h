// plait::scipy: functions of scipy.special and of the normal distribution, under SciPy's names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/nn.h>

namespace plait::scipy {

namespace special {

using nn::log_softmax;
using nn::logsumexp;
using nn::softmax;
Array erf(Operand x);
Array erfinv(Operand x);
Array expit(Operand x);  // the logistic function
Array logit(Operand x);  // its inverse
Array gammaln(Operand x);
Array digamma(Operand x);

}  // namespace special

// The normal distribution of mean loc and standard deviation scale.
namespace stats::norm {

Array logpdf(Operand x, Operand loc = 0, Operand scale = 1);
Array pdf(Operand x, Operand loc = 0, Operand scale = 1);
Array cdf(Operand x, Operand loc = 0, Operand scale = 1);

}  // namespace stats::norm
}  // namespace plait::scipy
