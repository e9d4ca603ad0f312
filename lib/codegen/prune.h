// Removes what no result of a loop program needs. See prune.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

void prune(LoopProgram& program);

}  // namespace plait::codegen
