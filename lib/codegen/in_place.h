// Whether a result may lie where an operand does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

// Whether nothing of an operand is read behind what is written to its place. Both are memories of
// the program.
bool may_overwrite(const LoopProgram& program, int operand, int result);

// Whether no two steps of loops in each other, from the outermost on, go to the same element.
bool is_injective(const Place& place, std::span<const Statement* const> loops);

}  // namespace plait::codegen
