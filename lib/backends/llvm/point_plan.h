// Groups whose results are functions of places, or reductions of such functions: which loops
// compute them.
//
// A nest computes the results of one shape, and the reductions over the same axes of that shape;
// what two nests need is computed in both, which is why it must be cheap.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "points.h"
#include "primitives/reduction/reduce.h"

namespace plait::llvm {

struct PointNest {
  enum class Kind { map, rows, columns } kind = Kind::map;
  Sizes64 shape;               // that the loops run over
  std::vector<int> axes;       // that are reduced
  ReductionStages stages;      // of that
  std::vector<int> stored;     // vars of this shape
  std::vector<int> reduced;    // results of reductions
  std::vector<int> equations;  // that it computes, but for the reductions; increasing
};

// The axes longer than 1 of a reduction's first stage, increasing.
std::vector<int> first_axes(const Sizes64& shape, const std::vector<int>& axes);
// Whether every element's place is the loops' own, so that axes may be merged.
bool is_plain(const JaxprData& program, const PointNest& nest);
// Whether equations of a program with these results are such a group; nothing when they are not, or
// when it would cost more than apart.
std::optional<std::vector<PointNest>> find_points(const JaxprData& program,
                                                  std::span<const int> equations,
                                                  std::span<const int> results,
                                                  bool at_any_cost = false);
// The results of a group, views among its equations, from what reads every var of the program.
std::vector<int> results_of(const JaxprData& program, std::span<const int> equations,
                            std::span<const int> uses);

}  // namespace plait::llvm
