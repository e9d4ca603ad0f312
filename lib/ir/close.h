// A program under construction, by the Builder and by the parser, and the function that closes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

namespace plait {

struct OpenJaxpr {
  std::vector<Var> binders;
  std::vector<Aval> avals;      // of every var, by id
  std::vector<int> definition;  // the equation that defines a var, -1 for binders
  std::vector<Equation> equations;
  std::vector<Constraint> constraints;

  Var add_var(Aval aval, int defined_by) {
    avals.push_back(std::move(aval));
    definition.push_back(defined_by);
    return {int(avals.size()) - 1};
  }
};

// Implements Builder::close. Nothing is copied where everything is already in canonical order, as
// in the text of a program.
Jaxpr close(OpenJaxpr open, std::vector<Atom> outputs, std::vector<Dim> sizes);

}  // namespace plait
