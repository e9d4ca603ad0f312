// Implicit differentiation: custom_linear_solve and custom_root. The derivatives of a solution
// follow from the equation that it solves, not from the solver: an iteration is neither stored nor
// differentiated. Names and order of arguments are JAX's.
//
//   Array x = plait::lax::custom_linear_solve(
//       [&](const Array& v) { return numpy::matmul(a, v); }, b,
//       [&](const auto& matvec, const Array& b) { return conjugate_gradient(matvec, b); });
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/linear_solve.h>
#include <plait/transforms/api.h>

namespace plait {
namespace flat {

// solve(f, y): an x with f(x) = y.
using Solver = std::function<Arrays(const Function& f, std::span<const Array> y)>;

// The x with matvec(x) = b for a linear matvec. transpose_solve, which solves with the transposed
// matvec, may be empty: MissingRuleError where reverse mode needs it.
Arrays custom_linear_solve(const Function& matvec, std::span<const Array> b, const Solver& solve,
                           const Solver& transpose_solve = {}, bool symmetric = false);
// An x with f(x) = 0, found by solve(f, initial_guess), which may branch on values where those of f
// are known. tangent_solve(g, y) solves the linear g(x) = y. Derivatives are with respect to the
// arrays that f captures; what the solvers capture has none. Where traces take part the solvers are
// traced; one that fails then, as is_failure says of the exception being handled (all of plait's,
// where it is null), runs as it is, and may capture nothing that is being differentiated.
Arrays custom_root(const Function& f, std::span<const Array> initial_guess, const Solver& solve,
                   const Solver& tangent_solve, const std::string& name = "f",
                   bool (*is_failure)() = nullptr);

}  // namespace flat

namespace detail {

// A function of one tree as a function of its leaves, and the reverse.
template <class T>
struct Leaves {
  Arrays arrays;  // declared before structure, which is made while it is filled
  TreeDef structure;
  explicit Leaves(const T& tree) : structure(flatten(tree, arrays)) {}
  T tree(std::span<const Array> leaves) const { return unflatten<T>(structure, leaves); }
  template <class F>
  Function flat(F function) const {
    return [function, self = *this](std::span<const Array> leaves) {
      Arrays outputs;
      flatten(function(self.tree(leaves)), outputs);
      return outputs;
    };
  }
  std::function<T(const T&)> shaped(const Function& function) const {
    return [function, self = *this](const T& tree) {
      Arrays leaves;
      flatten(tree, leaves);
      return self.tree(function(leaves));
    };
  }
  template <class S>
  plait::flat::Solver solver(S solve) const {
    return [solve, self = *this](const Function& f, std::span<const Array> y) {
      Arrays outputs;
      flatten(solve(self.shaped(f), self.tree(y)), outputs);
      return outputs;
    };
  }
};

}  // namespace detail

namespace lax {

// The x, of b's structure, with matvec(x) = b. solve(matvec, b) finds it. Reverse mode needs
// transpose_solve(vecmat, b) unless the system is symmetric.
template <class T, class Matvec, class Solve, class TransposeSolve = std::nullptr_t>
T custom_linear_solve(Matvec matvec, const T& b, Solve solve,
                      TransposeSolve transpose_solve = nullptr, bool symmetric = false) {
  const plait::detail::Leaves<T> leaves(b);
  flat::Solver transposed;
  if constexpr (!std::is_null_pointer_v<TransposeSolve>)
    transposed = leaves.solver(transpose_solve);
  return leaves.tree(flat::custom_linear_solve(leaves.flat(matvec), leaves.arrays,
                                               leaves.solver(solve), transposed, symmetric));
}

// The x, of initial_guess's structure, with f(x) = 0, found by solve(f, initial_guess).
// tangent_solve(g, y) gives the x with g(x) = y for a linear g; derivatives apply it.
template <class T, class F, class Solve, class TangentSolve>
T custom_root(F f, const T& initial_guess, Solve solve, TangentSolve tangent_solve) {
  const plait::detail::Leaves<T> leaves(initial_guess);
  return leaves.tree(flat::custom_root(leaves.flat(f), leaves.arrays, leaves.solver(solve),
                                       leaves.solver(tangent_solve)));
}

}  // namespace lax
}  // namespace plait
