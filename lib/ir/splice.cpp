// See splice.h.
// SPDX-License-Identifier: Apache-2.0
#include "ir/splice.h"

#include "ir/environment.h"

namespace plait {

std::vector<Atom> splice(Builder& builder, const Jaxpr& program, std::vector<Atom> inputs) {
  Environment environment(program, std::move(inputs));
  for (const Equation& equation : program->equations)
    environment.set(
        equation.outputs,
        builder.add(*equation.primitive, environment.read(equation.inputs), equation.params,
                    equation.source, output_avals(*program, equation)));
  for (const Constraint& constraint : program->constraints) builder.add_constraint(constraint);
  return environment.read(program->outputs);
}

}  // namespace plait
