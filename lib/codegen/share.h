// Which loops of a program several threads share.
//
// Decided here alone, after loops were fused, since those are longer: emitters write down what a
// loop's `grain` says. Steps keep their numbers and reductions their order, so that results have
// the same bits whatever the number of threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

// Sets the grain of loops whose steps are independent and long enough.
void share(LoopProgram& program);
// Whether a loop's steps may run on several threads at once: see L7. It may hold loops that are
// shared.
bool may_share(const LoopProgram& program, const Statement& loop);
// Whether it writes at indices of which the program does not know the range: a parsed one knows
// those of counters alone.
bool writes_anywhere(const LoopProgram& program, const Statement& loop);
int num_shared(const Block& block);

}  // namespace plait::codegen
