// See rules/bodies.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/bodies.h>

#include <algorithm>
#include <numeric>

namespace plait {

std::vector<Body> bodies_of(const Equation& equation) {
  if (!holds_bodies(equation.params)) return {};
  const Bodies::Rule* rule = Bodies::table().find(*equation.primitive);
  return rule ? (*rule)(equation.params) : std::vector<Body>{};
}

bool has_loop_body(const Equation& equation) {
  return std::ranges::any_of(bodies_of(equation),
                             [](const Body& body) { return body.runs == Body::Runs::repeatedly; });
}

std::vector<int> operands_from(int first, const Jaxpr& body) {
  std::vector<int> operands(std::size_t(body->num_binders));
  std::iota(operands.begin(), operands.end(), first);
  return operands;
}

std::vector<int> operands_of_loop(std::size_t num_carry, int first, const Jaxpr& body) {
  std::vector<int> operands = operands_from(first - int(num_carry), body);
  std::fill_n(operands.begin(), num_carry, Body::carried);
  return operands;
}

}  // namespace plait
