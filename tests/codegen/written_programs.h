// Loop programs written statement by statement, whose texts are in tests/codegen/texts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/plait.h>

#include "codegen/program.h"

namespace plait::codegen {

struct WrittenProgram {
  std::string name;
  LoopProgram program;
  Arrays operands;
  std::vector<Aval> results;
};

// Sums of neighbours, whose two arrays change places in every step.
WrittenProgram smoothed();
// Sums of the products of rows that indices choose, in order and in parts; what is chosen is
// checked.
WrittenProgram chosen_rows();
// A number that is halved or grows, by turns of a branch, until it is small: a while loop.
WrittenProgram halved();

}  // namespace plait::codegen
