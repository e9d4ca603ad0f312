// What explain says about the copies of a loop program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

// What the steps of its loops copy, and why; "" where they copy nothing.
//
//   copies f64[64,64] at each step: line 12 reads what line 11 overwrites
std::string copies_in_loops(const LoopProgram& program);

}  // namespace plait::codegen
