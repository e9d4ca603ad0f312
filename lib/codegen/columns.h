// Reductions over an axis that is not the last take in row after row. See columns.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

void take_in_rows(LoopProgram& program);

}  // namespace plait::codegen
