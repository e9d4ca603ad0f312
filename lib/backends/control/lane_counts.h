// What loop programs count of the work of lanes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "codegen/program.h"

namespace plait {

// Adds what a run has left in the memories of a program that are counts: see lane_work.h.
void count_lane_work(const codegen::LoopProgram& program, std::span<void* const> memories);

}  // namespace plait
