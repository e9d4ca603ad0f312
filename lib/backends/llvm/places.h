// Which equations one loop program computes in a few loops: functions of places (elementwise ones,
// movement, gathers, random bits), and reductions of these that no others read.
//
// What two loops need is computed in both, or lies in memory between them, which is why it must be
// cheap.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

#include <span>

namespace plait::llvm {

// Whether equations of a program, with these results, are worth computing together; one equation
// alone: whether it is one of them.
bool are_of_places(const JaxprData& program, std::span<const int> equations,
                   std::span<const int> results);
// The results of a group, views among its equations, from what reads every var of the program.
std::vector<int> results_of(const JaxprData& program, std::span<const int> equations,
                            std::span<const int> uses);

}  // namespace plait::llvm
