// plait::scipy::optimize: the minimum of a function, by quasi-Newton methods.
//
//   auto found = scipy::optimize::minimize([](const Array& x) { return numpy::sum(x * x); }, x0);
//
// The loops are lax::while_loop: minimize works under jit and vmap. The minimum has derivatives
// with respect to the arrays that the function captures, as the root of its gradient: they need no
// steps.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/numpy.h>

#include <functional>
#include <limits>

namespace plait::scipy::optimize {

struct OptimizeResults {
  Array x, success, status, fun, jac;
  std::optional<Array> hess_inv;  // of BFGS
  Array nfev, njev, nit;
};

struct MinimizeOptions {
  Array gtol = 1e-5;                                      // of the gradient's norm
  double norm = std::numeric_limits<double>::infinity();  // which norm that is
  std::optional<std::int64_t> maxiter = {};               // 200 times the number of unknowns
  int line_search_maxiter = 20;
  int maxcor = 10;  // the pairs that L-BFGS remembers
};

// The x, a vector, where fun, a real number, is least near x0. method: "BFGS", or "L-BFGS", which
// needs less memory. tol is gtol. status: 0, the gradient's norm is below gtol; 1, after maxiter
// steps; 3, no lower value along the direction. success is status == 0.
OptimizeResults minimize(const std::function<Array(const Array&)>& fun, Operand x0,
                         const std::string& method = "BFGS", const std::optional<Array>& tol = {},
                         const MinimizeOptions& options = {});

}  // namespace plait::scipy::optimize
