// Loops over the same steps, one after the other, become one. See unite.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

void unite(LoopProgram& program);

}  // namespace plait::codegen
