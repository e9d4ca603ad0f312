// Lowering: from equations to a loop program. See lower.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

// What lowering is given.
struct Setting {
  // Applied to the programs that equations hold.
  std::function<Jaxpr(const Jaxpr&)> simplified;
  // Whether a library runs the equation better than loops do.
  std::function<bool(const Equation&, std::span<const Aval> inputs, std::span<const Aval> outputs)>
      is_taken;
  // A kernel of the CPU for the program of one equation, whose inputs have these strides; none
  // where nothing but a slow compiler has one.
  std::function<std::shared_ptr<const Kernel>(const Jaxpr&, std::span<const Sizes64> strides)>
      kernel;
  // Arrays of so many elements are lists of numbers; larger ones are loops.
  std::int64_t few = loops::few;
  // Whether kernels may run equations: then rules refuse what kernels run better.
  bool has_kernels = true;
};
// A group of equations, whose inputs are the operands of the program and lie in memory by these
// strides, which are not negative, or the reason why it is none.
struct Lowered {
  std::optional<LoopProgram> program;
  std::string reason;
  // How many loops write memory, before any is cut in pieces; nothing where steps of one of them
  // wait for each other.
  std::optional<int> loops_apart = {};
};
Lowered lower(const Jaxpr& group, std::span<const Sizes64> strides, const Setting& setting);
// How many elements an array of these strides reaches over.
std::int64_t reach_of(const Sizes64& sizes, const Sizes64& strides);
// An equation as a program of its operands that are no literals.
Jaxpr program_of(const Equation& equation, std::span<const Aval> inputs);
// Some equations of a program, in order, with these vars as results.
Jaxpr program_of(const JaxprData& program, std::span<const int> equations,
                 std::span<const int> results);

}  // namespace plait::codegen
