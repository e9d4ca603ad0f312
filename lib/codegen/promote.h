// Memory becomes numbers that loops carry. See promote.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

// Of a loop whose steps are apart: the elements that a step has for itself, at known places, become
// numbers, with the short loops over them written out. Memory that the program reads elsewhere is
// written at the end of a step.
void promote(LoopProgram& program, Statement& loop);
// The same with the loops in it as they are.
void keep_numbers(LoopProgram& program, Statement& loop);
// The same of the whole program, whose memory of few elements becomes numbers.
void promote(LoopProgram& program);

}  // namespace plait::codegen
