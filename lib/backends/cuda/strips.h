// Strips: neighbours that the lanes of a warp, or the threads of a block, go through in turns, four
// elements each (Lanes in device/plait/lanes.h). In memory that allows it a lane loads and stores
// its four at once.
//
// Where a step of a grid goes through rows in strips alone, a warp runs it, and each of its lanes
// keeps its own elements of the rows in registers.
//
// NOTE: [order of long combinations] A combination of 256 terms or more, if it is not in order, has
// 128 parts on a GPU. Part p takes in the terms p, p + 128, ... one after the other. Then parts 0
// and 1, 2 and 3, ... are joined, then pairs of these, and so on. So each lane of a warp has four
// parts: neighbours, which it loads at once, or some at a distance of 32, of which neighbouring
// lanes load neighbours. A thread alone joins parts as they come. Shorter combinations have the
// eight parts of NOTE: [reduction order]. The order follows from the number of terms alone: it is
// the same whichever team runs it, wherever its terms lie, with sizes written or given.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "stages.h"

namespace plait::cuda {

// Combinations of so many terms, or more, have the parts of a strip of a warp: 128, of which each
// lane has four. Shorter ones have eight. See NOTE: [order of long combinations].
inline constexpr std::int64_t fewest_of_strip = 256, parts_of_strip = 128;
bool is_long(const codegen::Statement& combine);

// Whether the steps of a loop, or of a combination, may be a strip: they run in any order, and only
// compute, load and store.
bool is_strip(const codegen::Statement& s);
codegen::Value counter_of(const codegen::Statement& loop);

// The loads and stores of a strip that are of neighbours, and may be those of four steps at once.
std::set<const codegen::Statement*> neighbours_of(const codegen::Statement& strip);
// Whether the first of each four is a multiple of four elements from where its memory begins.
bool begins_at_fours(const codegen::Place& place, codegen::Value counter);

struct RegisterRows {
  std::vector<const Row*> rows;
  std::set<const codegen::Place*> places;  // that are in them
};
// The rows of a stage whose steps warps run; nothing where some do not fit.
std::optional<RegisterRows> register_rows_of(const codegen::LoopProgram& program,
                                             const Stage& stage);

}  // namespace plait::cuda
