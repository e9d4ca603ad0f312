// Copies as loops, which may become one with the loops beside them. For machines on which a copy is
// no quicker than a loop.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

// A copy as loops in any order, over axes that go on in both memories where one ends.
Statement loop_of(LoopProgram& program, const Statement& copy);
// All copies of a program that are not within loops.
void write_copies_out(LoopProgram& program);

}  // namespace plait::codegen
