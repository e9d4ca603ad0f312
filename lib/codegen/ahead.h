// Loops over rows ask for the next row. See ahead.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

void ask_ahead(LoopProgram& program);

}  // namespace plait::codegen
