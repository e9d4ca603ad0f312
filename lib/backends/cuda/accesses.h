// Which elements statements read and write: threads that run them together meet between two of
// them only where one writes what the other reads or writes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::cuda {

// Elements of a memory from low to high, from where the counters of loops around have led.
struct Region {
  int memory;
  std::vector<codegen::Place::Term> terms;
  std::int64_t low, high;
};
// True where it is not known.
bool may_share(const Region& a, const Region& b);
bool may_share(const std::vector<Region>& a, const std::vector<Region>& b);

struct Accesses {
  std::vector<Region> reads, writes;
  explicit Accesses(const codegen::Statement& statement);
};

}  // namespace plait::cuda
