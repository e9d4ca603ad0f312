// What a step alone uses of an array becomes memory of its own. See own.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

void give_steps_their_own(LoopProgram& program);
// The memories of which steps of any loop have their own.
std::vector<int> memories_of_steps(const LoopProgram& program);

}  // namespace plait::codegen
