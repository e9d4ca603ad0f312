// What stands for the vars of a program in another one that is made from it: what every walk that
// rebuilds a program carries along.
//
//   Environment environment(program, inputs);
//   for (const Equation& equation : program->equations)
//     environment.set(equation.outputs, add(equation, environment.read(equation.inputs)));
//   return environment.read(program->outputs);
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

namespace plait {

class Environment {
 public:
  // inputs stand for the binders, or for the first of them.
  explicit Environment(const Jaxpr& program, std::vector<Atom> inputs = {})
      : atoms_(std::move(inputs)) {
    atoms_.resize(program->avals.size(), Atom(Var{}));
  }

  Atom read(const Atom& atom) const {
    return atom.is_var() ? atoms_[std::size_t(atom.var().id)] : atom;
  }
  std::vector<Atom> read(std::span<const Atom> atoms) const {
    std::vector<Atom> result;
    result.reserve(atoms.size());
    for (const Atom& atom : atoms) result.push_back(read(atom));
    return result;
  }

  void set(Var var, const Atom& now) { atoms_[std::size_t(var.id)] = now; }
  // now: atoms or vars, not more than there are vars.
  template <class Atoms>
  void set(std::span<const Var> vars, const Atoms& now) {
    for (std::size_t i = 0; i < now.size(); ++i) set(vars[i], now[i]);
  }

 private:
  std::vector<Atom> atoms_;  // by var
};

// The types of an equation's outputs.
inline std::vector<Aval> output_avals(const JaxprData& program, const Equation& equation) {
  std::vector<Aval> avals;
  avals.reserve(equation.outputs.size());
  for (Var var : equation.outputs) avals.push_back(program.avals[std::size_t(var.id)]);
  return avals;
}

}  // namespace plait
