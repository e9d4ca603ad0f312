// An independent axis moves outside of a serial loop. See outward.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

// Whether a loop changed.
bool move_outward(LoopProgram& program);

}  // namespace plait::codegen
