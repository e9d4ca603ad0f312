// Loop programs of equations, for the backends that run them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/lower.h"

namespace plait::compile_passes {

using LoopProgram = std::shared_ptr<const codegen::Lowered>;

// The loop program of a group whose inputs lie dense in memory, or why there is none.
LoopProgram loop_program(const Jaxpr& group);
// That of one equation.
LoopProgram loop_program(const Equation& equation, std::span<const Aval> inputs);

}  // namespace plait::compile_passes
