// The equations of a program, added to another one that is being built.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

namespace plait {

// Applied to inputs of the types of its binders: the program's outputs. What it asks of sizes is
// added too.
std::vector<Atom> splice(Builder& builder, const Jaxpr& program, std::vector<Atom> inputs);

}  // namespace plait
