// See alone.h.
// SPDX-License-Identifier: Apache-2.0
#include "control/alone.h"

#include <plait/control/primitives.h>
#include <plait/primitives/linalg.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/bodies.h>

#include <algorithm>

#include "primitives/contraction/dot.h"

namespace plait {
namespace {

bool is_own(const Atom& atom, const std::vector<bool>& batched) {
  return atom.is_var() && batched[std::size_t(atom.var().id)];
}

// Examples' own rows or columns are those of one product: more of them may have another order.
bool is_same_product(const Jaxpr& body, const Equation& equation, const std::vector<bool>& batched,
                     std::int64_t num_examples) {
  constexpr std::int64_t few = 32;  // what no library takes
  const DotAxes axes(equation.params);
  const Aval &lhs = body->aval(equation.inputs[0]), &rhs = body->aval(equation.inputs[1]);
  if (is_integer(lhs.dtype)) return true;
  std::int64_t m = 1, k = 1, n = 1;
  for (int axis : free_axes(lhs.rank(), axes.lhs_contract, axes.lhs_batch))
    m *= lhs.shape[axis].constant();
  for (int axis : axes.lhs_contract) k *= lhs.shape[axis].constant();
  for (int axis : free_axes(rhs.rank(), axes.rhs_contract, axes.rhs_batch))
    n *= rhs.shape[axis].constant();
  if (lhs.dtype != DType::float64 && (lhs.dtype != DType::float32 || m > few || k > few || n > few))
    return false;
  const bool has_own_lhs = is_own(equation.inputs[0], batched),
             has_own_rhs = is_own(equation.inputs[1], batched);
  if (has_own_lhs == has_own_rhs) return true;
  const std::int64_t all_m = has_own_lhs ? m * num_examples : m,
                     all_n = has_own_rhs ? n * num_examples : n;
  return is_summed_by_parts(m, k, n) == is_summed_by_parts(all_m, k, all_n) &&
         is_summed_in_order(m, k, n) == is_summed_in_order(all_m, k, all_n);
}

}  // namespace

bool is_same_alone(const Jaxpr& body, std::vector<bool> batched, std::int64_t num_examples) {
  batched.resize(body->avals.size(), false);
  for (const Equation& equation : body->equations) {
    std::vector<bool> own;
    for (const Atom& atom : equation.inputs) own.push_back(is_own(atom, batched));
    const bool any = std::find(own.begin(), own.end(), true) != own.end();
    for (Var var : equation.outputs) batched[std::size_t(var.id)] = any;
    if (!any) continue;
    if (*equation.primitive == triangular_solve_p && !own[0]) return false;
    if (*equation.primitive == dot_general_p &&
        !is_same_product(body, equation, batched, num_examples))
      return false;
    const std::vector<Body> bodies = bodies_of(equation);
    for (const Body& inner : bodies) {
      std::vector<bool> inner_own;
      for (const int operand : inner.operands)
        inner_own.push_back(operand == Body::carried || own[std::size_t(operand)]);
      inner_own.resize(std::size_t(inner.jaxpr->num_binders), true);
      if (!is_same_alone(inner.jaxpr, std::move(inner_own), num_examples)) return false;
    }
    if (!bodies.empty()) continue;
    bool same = true;
    for_each_body(open_bodies(equation.params), [&](const Jaxpr& inner) {
      same &= is_same_alone(inner, std::vector<bool>(std::size_t(inner->num_binders), true),
                            num_examples);
    });
    if (!same) return false;
  }
  return true;
}

}  // namespace plait
