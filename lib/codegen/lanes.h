// Which values have a number for each lane, and how many steps are written together.
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

// How many steps of a parallel loop are lanes of vectors of so many bytes.
inline constexpr int most_lanes = 64;
int num_lanes(const LoopProgram& program, const Statement& loop, int vector_bytes);

// Whether each step of a loop that is not within lanes is a combination or a few, and what is
// computed before and behind them. So many steps are written together: one waits for the sums of
// the step before it, and the others use the time.
inline constexpr int rows_together = 4;
bool combines_apart(const Statement& loop);

}  // namespace plait::codegen
