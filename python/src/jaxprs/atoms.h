// Vars, literals and parameters of programs as Python sees them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bindings.h"

namespace plait::python {

// A plait.Var: the name that text gives it, a str, with `aval` and `id`; owner says which program
// or builder it is of.
py::object var_object(Var var, const Aval& aval, std::uintptr_t owner);
inline std::uintptr_t owner_of(const Jaxpr& jaxpr) {
  return reinterpret_cast<std::uintptr_t>(&*jaxpr);
}
// A plait.Var, or a literal as an Array of no axes.
py::object atom_object(const Atom& atom, const JaxprData& jaxpr);
// The other way round: numbers are literals. ValueError for a var of none of the owners, and for
// arrays that are no numbers.
Atom to_atom(py::handle object, std::span<const std::uintptr_t> owners, const char* what);
Var to_var(py::handle object, std::span<const std::uintptr_t> owners, const char* what);

// The value of a parameter (extend.cpp).
ParamValue to_param(py::handle value, const std::string& name);

// One equation of a jaxpr.
struct EquationView {
  Jaxpr jaxpr;
  std::size_t index;
  const Equation& equation() const { return jaxpr->equations[index]; }
};

}  // namespace plait::python
