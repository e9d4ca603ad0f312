// See splice.h.
// SPDX-License-Identifier: Apache-2.0
#include "ir/splice.h"

namespace plait {

std::vector<Atom> splice(Builder& builder, const Jaxpr& program, std::vector<Atom> inputs) {
  std::vector<Atom> environment = std::move(inputs);
  environment.resize(program->avals.size(), Atom(Var{}));
  auto read = [&](const Atom& atom) { return atom.is_var() ? environment[atom.var().id] : atom; };
  for (const Equation& equation : program->equations) {
    std::vector<Atom> operands;
    std::vector<Aval> avals;
    for (const Atom& atom : equation.inputs) operands.push_back(read(atom));
    for (Var var : equation.outputs) avals.push_back(program->aval(var));
    const std::vector<Var> results =
        builder.add(*equation.primitive, std::move(operands), equation.params, equation.source,
                    std::move(avals));
    for (std::size_t i = 0; i < results.size(); ++i)
      environment[equation.outputs[i].id] = results[i];
  }
  for (const Constraint& constraint : program->constraints) builder.add_constraint(constraint);
  std::vector<Atom> outputs;
  for (const Atom& atom : program->outputs) outputs.push_back(read(atom));
  return outputs;
}

}  // namespace plait
