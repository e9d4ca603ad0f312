// What statements read, write, use and define.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

// Of the statements that were added, with those in them. Each may be named several times.
struct Effects {
  std::vector<int> reads, writes;  // memories
  std::vector<Value> used, defined;

  void add(const Statement& statement);
};

}  // namespace plait::codegen
