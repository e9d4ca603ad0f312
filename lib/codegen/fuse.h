// Fusion: neighbouring loops over the same indices become one. See fuse.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

void fuse(LoopProgram& program);
// Loops without a gap between them become one.
void merge(Block& block);

}  // namespace plait::codegen
