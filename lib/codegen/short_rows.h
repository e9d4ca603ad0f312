// Rows of few elements become lines: see short_rows.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

void join_short_rows(LoopProgram& program);

}  // namespace plait::codegen
