// Kernels for loop programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

#include "codegen/program.h"

namespace plait::llvm {

// Whether an equation is a loop that has a loop program.
Support supports_program(const Equation& equation, std::span<const Aval> inputs);
// Whether a group has one.
bool has_program(const Jaxpr& group);
// The kernel of a group that is such a loop, or that has a loop program; its inputs have these
// strides.
std::unique_ptr<Kernel> make_program_kernel(const Jaxpr& group, std::span<const Sizes64> strides);
// That of a loop program; nullptr where it cannot be written.
std::unique_ptr<Kernel> make_program_kernel(const codegen::LoopProgram& program);

}  // namespace plait::llvm
