// What was computed, loaded or checked before is not again. See once.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

void compute_once(LoopProgram& program);

}  // namespace plait::codegen
