// The loops of a nest of functions of places, as code. See point_plan.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jit.h"
#include "point_plan.h"

namespace plait::llvm {

// The axes that a nest's loops count, and how every input moves along them: neighbours are merged
// where all allow it.
struct PointLayout {
  enum class Role { outer, reduced, inner };
  struct Counter {
    std::int64_t size;
    Role role;
  };
  std::vector<Counter> counters;  // from the outside in
  std::vector<int> counter_of;    // by axis that the elements' places have, or -1 for size 1
  std::vector<Sizes64> strides;   // by input, for those axes
  std::vector<std::optional<View>> packed;  // by input: how it is seen to be copied, no memory
  int lane = 0;                             // the counter along which lanes lie
  std::int64_t lane_size = 1;
  std::vector<int> with_role(Role role) const;
  std::int64_t count(Role role) const;
};
PointLayout lay_out(const JaxprData& group, const PointNest& nest,
                    std::span<const Sizes64> strides);

// What the function takes as units: of a map pieces of rows, of rows their blocks, of columns tiles
// of blocks.
struct PointUnits {
  std::int64_t count = 1, tile = 1, tiles = 1, blocks = 1;
};
PointUnits units_of(const PointNest& nest, const PointLayout& layout, int lanes);

// A function of inputs, the nest's stored results, and the numbers of its reductions' blocks, or
// the results where is_direct.
Object write_points(const JaxprData& group, const PointNest& nest, const PointLayout& layout,
                    const PointUnits& units, int lanes, const std::vector<bool>& streams);
bool is_direct(const PointNest& nest);

}  // namespace plait::llvm
