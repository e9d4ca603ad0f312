// Long chains in lanes are cut into segments that a processor can overlap with their neighbours.
//
// NOTE: [segments] A long chain of polynomials waits for itself: the next vector's instructions lie
// beyond what a processor looks ahead. So the chain is cut. Each segment runs over a block of
// vectors before the next one does, which leaves enough independent work in sight; what crosses a
// cut passes through a block in the first-level cache. Unrolling would do as well, and compile for
// as many times longer.
//
// What is a few instructions away from memory that stays, or from one value that crosses cuts
// anyway, crosses none: every segment that uses it computes it anew.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

void cut_chains(LoopProgram& program);

}  // namespace plait::codegen
