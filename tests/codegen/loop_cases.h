// Loops to run in every way: as people write them, of every primitive, and random ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/plait.h>

#include <map>

#include "compile/loop_programs.h"

namespace plait::codegen {

// A loop that has a loop program, with its operands.
struct LoopCase {
  std::string name;
  Jaxpr group;  // the loop alone
  Arrays operands;
  compile_passes::SharedLowered lowered;

  const LoopProgram& program() const { return *lowered->program; }
  std::vector<Aval> results() const { return group->output_avals(); }
};
struct LoopCases {
  std::vector<LoopCase> loops;
  std::map<std::string, int> refused;  // those that have none, by reason

  void add(LoopCases more);
};

// The loops of a function at these inputs, in which others may be.
LoopCases loops_of(const std::string& name, const Function& function, const Arrays& inputs);

LoopCases written_loops();
// Loops of many lanes that become one, in which steps have memory of their own.
LoopCases united_loops();
// Each sample of each primitive in the steps of a loop.
LoopCases loops_of_primitives();
// The loops of random programs under random transforms.
LoopCases random_loops(unsigned first_seed, unsigned count);

}  // namespace plait::codegen
