// Lowering: from equations to a loop program. See lower.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

// A group of equations, whose inputs are the operands of the program and lie dense in memory, or
// the reason why it is none. simplified: applied to the programs that equations hold.
struct Lowered {
  std::optional<LoopProgram> program;
  std::string reason;
};
Lowered lower(const Jaxpr& group, const std::function<Jaxpr(const Jaxpr&)>& simplified);

}  // namespace plait::codegen
