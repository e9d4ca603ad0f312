// Which values have a number for each lane.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

// By value: whether it changes within a loop whose steps are lanes: a parallel one, or else a
// combination. Numbers that a loop carries within lanes change there where the first or the next
// one does.
std::vector<bool> find_lanes(const LoopProgram& program);

// Whether the steps of a loop run side by side in lanes: they compute, load, store, combine, and
// run loops and branches that go the same way in every lane, or while loops that do not store.
bool runs_in_lanes(const Statement& loop, const std::vector<bool>& has_lanes);

}  // namespace plait::codegen
