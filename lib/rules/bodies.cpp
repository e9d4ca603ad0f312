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

bool runs_examples(const Equation& equation) {
  return std::ranges::any_of(bodies_of(equation),
                             [](const Body& body) { return body.runs == Body::Runs::per_example; });
}

std::size_t num_replaced(const Body& body) {
  const JaxprData& program = *body.jaxpr;
  const bool is_step = body.runs == Body::Runs::repeatedly;
  std::size_t most = std::min(program.outputs.size(), std::size_t(program.num_binders)), count = 0;
  const auto is_alike = [&](std::size_t i) {
    const Aval next = program.aval(program.outputs[i]);
    return next.shape == program.avals[i].shape && next.dtype == program.avals[i].dtype &&
           next.stack == program.avals[i].stack;
  };
  if (is_step) {
    const auto end = std::find_if(body.operands.begin(), body.operands.end(),
                                  [](int operand) { return operand != Body::carried; });
    const auto carried = std::size_t(end - body.operands.begin());
    if (most < carried) return 0;  // a condition
    most = carried;
  } else if (body.runs != Body::Runs::alternatively) {
    return 0;
  }
  while (count < most && is_alike(count)) ++count;
  return is_step && count < most ? 0 : count;
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
