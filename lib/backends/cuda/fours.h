// Stages whose threads run four neighbouring steps at once, with one load or store for the four
// elements that they read or write: a memory then gives what it can.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>

#include "stages.h"

namespace plait::cuda {

struct Fours {
  std::set<codegen::Value> common;            // numbers that the four steps have in common
  std::set<const codegen::Statement*> whole;  // loads and stores of four neighbours
  std::set<int> memories;                     // whose addresses must be multiples of four elements
};
// Of a stage whose steps only compute, load and store; none where that is no use.
std::optional<Fours> fours_of(const Stage& stage);

}  // namespace plait::cuda
