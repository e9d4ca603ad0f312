// Loop programs of equations, for the backends that run them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/lower.h"

namespace plait::compile_passes {

using SharedLowered = std::shared_ptr<const codegen::Lowered>;

// The loop program of a group whose inputs lie dense in memory, or why there is none.
SharedLowered loop_program(const Jaxpr& group);
// That of one equation.
SharedLowered loop_program(const Equation& equation, std::span<const Aval> inputs);

// A backend that generates code for loop programs, wherever they come from.
class ProgramCompiler {
 public:
  // nullptr where it cannot.
  virtual std::unique_ptr<Kernel> compile_program(const codegen::LoopProgram& program) const = 0;

 protected:
  ~ProgramCompiler() = default;
};

}  // namespace plait::compile_passes
