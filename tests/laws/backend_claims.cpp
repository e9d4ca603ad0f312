// Which backend runs a case. See laws.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/compile/backend.h>

#include "laws.h"

namespace plait::laws {

Support accepts(const Backend& backend, const Case& one) {
  const Jaxpr program = make_jaxpr(one.function(), one.avals()).jaxpr;
  Support answer = Support::no("its program does not hold it");
  for (const Equation& equation : program->equations) {
    const bool is_it = one.primitive ? *equation.primitive == *one.primitive
                                     : *equation.primitive == composite_p &&
                                           equation.params.text("symbol") == one.name;
    if (!is_it) continue;
    std::vector<Aval> inputs, outputs;
    for (const Atom& atom : equation.inputs) inputs.push_back(program->aval(atom));
    for (Var var : equation.outputs) outputs.push_back(program->aval(var));
    answer = backend.supports(equation, inputs, outputs, {});
    if (answer) return answer;
  }
  return answer;
}

const Backend* library_of(const Case& one) {
  for (const Backend* backend : backends_of()) {
    if (backend->name() == "reference") return nullptr;
    if (backend->runs_eagerly() && accepts(*backend, one)) return backend;
  }
  return nullptr;
}

Verdict difference_in_results(const Case& one, const Arrays& actual, const Arrays& expected) {
  return !one.primitive && library_of(one) ? difference(actual, expected)
                                           : difference_in_bits(actual, expected);
}

}  // namespace plait::laws
