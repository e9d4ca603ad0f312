// What a step stores for the next ones is carried to them. See hand_on.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

void hand_on(LoopProgram& program);

}  // namespace plait::codegen
