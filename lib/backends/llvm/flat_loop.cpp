// See flat_loop.h.
// SPDX-License-Identifier: Apache-2.0
#include "flat_loop.h"

#include <plait/control/primitives.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/rules.h>

#include <algorithm>

#include "loop_plan.h"

namespace plait::llvm {
namespace {

// The shape of most elements among a body's binders.
Shape shape_of(const Jaxpr& body) {
  Shape shape;
  for (const Aval& aval : body->input_avals())
    if (aval.shape.num_elements().constant() > shape.num_elements().constant() || shape.empty())
      shape = aval.shape;
  return shape;
}

Aval flat_aval(Aval aval, const Shape& shape) {
  if (aval.shape == shape) aval.shape = Shape{shape.num_elements()};
  return aval;
}

// The parameters of an equation on vectors; nothing where it does not treat elements alike.
std::optional<Params> flat_params(const Equation& equation, const Jaxpr& body, const Shape& shape) {
  const Shape flat{shape.num_elements()};
  if (Pointwise::table().find(*equation.primitive)) return equation.params;
  auto is_scalar = [&](const Atom& atom) { return body->aval(atom).rank() == 0; };
  const auto has_one_key = [&] { return body->aval(equation.inputs[0]).rank() == 1; };
  if (*equation.primitive == broadcast_in_dim_p && is_scalar(equation.inputs[0]) &&
      equation.params.get<Shape>("shape") == shape)
    return equation.params.with("shape", flat);
  // Elements are counted row-major.
  if (*equation.primitive == random_bits_p && has_one_key() &&
      equation.params.get<Shape>("shape") == shape)
    return equation.params.with("shape", flat);
  if (*equation.primitive == random_fold_p && has_one_key() && is_scalar(equation.inputs[1]))
    return equation.params;
  return std::nullopt;
}

std::optional<Jaxpr> flat_body(const Jaxpr& body, const Shape& shape) {
  Builder builder;
  std::vector<Var> vars(body->avals.size());
  for (int i = 0; i < body->num_binders; ++i)
    vars[std::size_t(i)] = builder.add_binder(flat_aval(body->avals[std::size_t(i)], shape));
  auto read = [&](const Atom& atom) {
    return atom.is_var() ? Atom(vars[std::size_t(atom.var().id)]) : atom;
  };
  for (const Equation& equation : body->equations) {
    const std::optional<Params> params = flat_params(equation, body, shape);
    if (!params) return std::nullopt;
    std::vector<Atom> inputs;
    std::vector<Aval> outputs;
    for (const Atom& atom : equation.inputs) inputs.push_back(read(atom));
    for (Var var : equation.outputs) outputs.push_back(flat_aval(body->aval(var), shape));
    const std::vector<Var> results =
        builder.add(*equation.primitive, inputs, *params, equation.source, outputs);
    for (std::size_t i = 0; i < results.size(); ++i)
      vars[std::size_t(equation.outputs[i].id)] = results[i];
  }
  std::vector<Atom> outputs;
  for (const Atom& atom : body->outputs) outputs.push_back(read(atom));
  return builder.close(std::move(outputs));
}

// A slice of this shape, or an array of them.
Aval flat_operand(Aval aval, const Shape& shape) {
  if (aval.shape == shape) return flat_aval(aval, shape);
  if (aval.rank() == shape.rank() + 1 && Shape(aval.shape.begin() + 1, aval.shape.end()) == shape)
    aval.shape = Shape{aval.shape[0], shape.num_elements()};
  return aval;
}

}  // namespace

std::optional<Params> flat_loop(const Params& params) {
  const Params open = open_bodies(params);
  const Shape shape = shape_of(open.get<Jaxpr>("body"));
  if (shape.rank() < 2) return std::nullopt;
  bool fits = true;
  const Params flat = map_bodies(open, [&](const Jaxpr& body) {
    const std::optional<Jaxpr> found = fits ? flat_body(plain_body(body), shape) : std::nullopt;
    fits &= found.has_value();
    return found.value_or(body);
  });
  return fits ? std::optional(flat) : std::nullopt;
}

Jaxpr flat_group(const Jaxpr& group) {
  const Equation& equation = group->equations[0];
  const Shape shape = shape_of(open_bodies(equation.params).get<Jaxpr>("body"));
  Builder builder;
  std::vector<Atom> inputs;
  std::vector<Var> binders;
  for (const Aval& aval : group->input_avals())
    binders.push_back(builder.add_binder(flat_operand(aval, shape)));
  for (const Atom& atom : equation.inputs)
    inputs.push_back(atom.is_var() ? Atom(binders[std::size_t(atom.var().id)]) : atom);
  const std::vector<Var> results =
      builder.add(*equation.primitive, inputs, *flat_loop(equation.params), equation.source);
  return builder.close({results.begin(), results.end()});
}

}  // namespace plait::llvm
