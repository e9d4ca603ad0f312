// What every step of a loop finds again goes before the loop. See invariants.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

void move_invariants(LoopProgram& program);

}  // namespace plait::codegen
