// Copies move into the loop that uses them. See inward.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

void move_copies_inward(LoopProgram& program);

}  // namespace plait::codegen
