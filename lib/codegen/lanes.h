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
// may_check: they may test what differs from lane to lane, though another one would fail first.
bool runs_in_lanes(const Statement& loop, const std::vector<bool>& has_lanes,
                   bool may_check = false);

// Bytes of the widest numbers that differ from lane to lane in a loop of lanes, or a combination;
// but numbers that count the steps, which are not computed by lane.
std::int64_t widest_in_lanes(const LoopProgram& program, const Statement& loop);

// How many steps of a parallel loop are lanes of vectors of so many bytes.
inline constexpr int most_lanes = 64;
int num_lanes(const LoopProgram& program, const Statement& loop, int vector_bytes);

// How many steps of a combination that is not within lanes are: as many as parts, or as are in a
// line of memory, which is taken in at once, since rows may be as far from each other as lines that
// displace each other in the first cache.
inline constexpr int parts_of_combination = 8;  // see NOTE: [reduction order]
int num_lanes_of_combination(const LoopProgram& program, const Statement& combine);

// How many combinations that follow each other, outside of lanes, run their steps together, from
// the first one on: they wait for their sums apart, and what they read of one row is loaded once.
std::size_t combines_together(const Block& block, std::size_t first);

// Whether each step of a loop that is not within lanes is a combination or a few, and what is
// computed before and behind them. So many steps are written together: one waits for the sums of
// the step before it, and the others use the time.
inline constexpr int rows_together = 4;
bool combines_apart(const Statement& loop);

}  // namespace plait::codegen
