// Columns are summed by the loop that goes through their rows. See column_sums.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

// Whether a loop changed.
bool sum_columns_with_rows(LoopProgram& program);

}  // namespace plait::codegen
