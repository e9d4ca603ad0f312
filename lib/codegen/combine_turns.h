// Combinations in the turns of a short loop become one. See combine_turns.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

// Whether a loop changed.
bool combine_turns(LoopProgram& program);

}  // namespace plait::codegen
