// Adds the equations of a program to another that is being built.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

namespace plait {

// Applied to inputs of the types of its binders; returns the program's outputs. Its constraints are
// added too.
std::vector<Atom> splice(Builder& builder, const Jaxpr& program, std::vector<Atom> inputs);

}  // namespace plait
