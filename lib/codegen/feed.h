// Combinations compute the elements that they read. See feed.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

// Whether a combination changed.
bool feed_combinations(LoopProgram& program);

}  // namespace plait::codegen
