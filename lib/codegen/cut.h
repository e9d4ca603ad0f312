// Loops of lanes in pieces.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

// The steps of a parallel loop from `first` on as a loop of `outer` steps over parallel loops of
// `inner` ones. Nothing where the loop uses its counter for more than places.
std::optional<Statement> cut(LoopProgram& program, const Statement& lanes, std::int64_t first,
                             std::int64_t outer, std::int64_t inner);

}  // namespace plait::codegen
