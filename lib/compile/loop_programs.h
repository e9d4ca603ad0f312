// Loop programs of equations, for the backends that run them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/lower.h"

namespace plait::compile_passes {

using SharedLowered = std::shared_ptr<const codegen::Lowered>;

// Of the inputs of a group, in elements: as they lie dense, and as a loop program reads those that
// lie by given strides: where they are, unless these go backward.
std::vector<Sizes64> dense_inputs(const Jaxpr& group);
std::vector<Sizes64> inputs_as_read(const Jaxpr& group, std::span<const Sizes64> given);

// The loop program of a group whose inputs lie in memory by these strides, or why there is none.
// That of another device than the CPU calls no kernels, and its loops are as many threads like
// them: rows come together, but no loop is cut or joined for caches and vectors.
SharedLowered loop_program(const Jaxpr& group, std::span<const Sizes64> strides,
                           Device device = {});
// Those of a group, or of one equation, whose inputs lie dense.
SharedLowered loop_program(const Jaxpr& group);
SharedLowered loop_program(const Equation& equation, std::span<const Aval> inputs,
                           Device device = {});

// Whether equal programs, and those that they hold, were written in the same lines: what fails says
// its own.
bool have_same_sources(const Jaxpr& one, const Jaxpr& other);

// What equations make that others read too, from what reads every var of the program.
std::vector<int> results_of(const Jaxpr& program, std::span<const int> uses,
                            std::span<const int> equations);
// Whether loops of a program become one loop, in which what one of them makes for another one is
// still in the cache. equations: theirs and the views between them. uses: of every var.
bool run_as_one(const Jaxpr& program, std::span<const int> uses, std::vector<int> equations);

// Whether a loop program counts how often bodies run for examples.
bool counts_lane_work(const codegen::LoopProgram& program);
// Runs a group step by step, for the error that it raises then; returns where it raises none.
void raise_step_by_step(const Jaxpr& group, std::span<const View> inputs, const Launch& launch);

// A backend that generates code for loop programs, wherever they come from.
class ProgramCompiler {
 public:
  // nullptr where it cannot.
  virtual std::unique_ptr<Kernel> compile_program(const codegen::LoopProgram& program) const = 0;

 protected:
  ~ProgramCompiler() = default;
};

}  // namespace plait::compile_passes
