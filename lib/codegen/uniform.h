// What all lanes share is computed before their loop. See uniform.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

void move_uniform_numbers(LoopProgram& program);

}  // namespace plait::codegen
