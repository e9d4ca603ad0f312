// Vars, literals and parameters of programs in Python.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bindings.h"

namespace plait::python {

// A plait.Var: a str, the name that text gives it, with `aval` and `id`. owner: the program or
// builder that it belongs to.
py::object var_object(Var var, const Aval& aval, std::uintptr_t owner);
inline std::uintptr_t owner_of(const Jaxpr& jaxpr) {
  return reinterpret_cast<std::uintptr_t>(&*jaxpr);
}
// A plait.Var, or a literal as an Array of rank 0.
py::object atom_object(const Atom& atom, const JaxprData& jaxpr);
// The inverse: numbers are literals. ValueError for a var of none of the owners, and for an array
// that is not a literal.
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
