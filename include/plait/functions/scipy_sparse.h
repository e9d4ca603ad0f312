// plait::scipy::sparse::linalg: Krylov solvers of linear systems over trees, under SciPy's names.
//
//   Array x = scipy::sparse::linalg::cg([&](const Array& v) { return numpy::matmul(a, v); }, b);
//
// The system is a matrix, or a linear function of trees like b. Derivatives follow from the
// equation that x solves: see lax::custom_linear_solve. Steps end where the norm of the residual is
// at most max(tol |b|, atol), or after maxiter of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/numpy.h>
#include <plait/transforms/implicit.h>

#include <optional>

namespace plait::scipy::sparse::linalg {

struct SolverOptions {
  Array tol = 1e-5, atol = 0.0;
  // Steps, by default 10 times the number of unknowns; of gmres, cycles of at most restart steps.
  std::optional<Array> maxiter = {};
  int restart = 20;
};

namespace flat {

enum class Method : std::uint8_t { cg, bicgstab, gmres };
// M, if any, is a function close to the inverse of A.
Arrays solve(Method method, const Function& A, std::span<const Array> b, std::span<const Array> x0,
             const SolverOptions& options, const Function& M);

}  // namespace flat

namespace detail {

// A matrix as a function, and a function as it is.
template <class F>
auto as_function(const F& f) {
  if constexpr (std::is_convertible_v<F, Array>)
    return [matrix = Array(f)](const Array& x) { return numpy::matmul(matrix, x); };
  else
    return f;
}

template <class T, class F, class P>
T solve(flat::Method method, const F& A, const T& b, const std::optional<T>& x0,
        const SolverOptions& options, const P& M) {
  const plait::detail::Leaves<T> leaves(b);
  Arrays start;
  if (x0) flatten(*x0, start);
  Function precondition;
  if constexpr (!std::is_null_pointer_v<P>) precondition = leaves.flat(as_function(M));
  return leaves.tree(flat::solve(method, leaves.flat(as_function(A)), leaves.arrays, start, options,
                                 precondition));
}

}  // namespace detail

// Conjugate gradients, for A that is Hermitian and positive definite.
template <class F, class T, class P = std::nullptr_t>
T cg(const F& A, const T& b, const std::optional<T>& x0 = {}, const SolverOptions& options = {},
     const P& M = {}) {
  return detail::solve(flat::Method::cg, A, b, x0, options, M);
}
// Stabilised biconjugate gradients, for any A; less memory than gmres, and two products a step.
template <class F, class T, class P = std::nullptr_t>
T bicgstab(const F& A, const T& b, const std::optional<T>& x0 = {},
           const SolverOptions& options = {}, const P& M = {}) {
  return detail::solve(flat::Method::bicgstab, A, b, x0, options, M);
}
// Generalised minimal residuals, for any A.
template <class F, class T, class P = std::nullptr_t>
T gmres(const F& A, const T& b, const std::optional<T>& x0 = {}, const SolverOptions& options = {},
        const P& M = {}) {
  return detail::solve(flat::Method::gmres, A, b, x0, options, M);
}

}  // namespace plait::scipy::sparse::linalg
