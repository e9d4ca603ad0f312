// Combinations that wait for the same come together. See together.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

void bring_combinations_together(LoopProgram& program);

}  // namespace plait::codegen
