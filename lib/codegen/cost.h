// The cost model: what a loop program takes as generated code, on one thread.
//
// A step of a loop takes the most of three times: of its operations, as many together as units can
// run; of the bytes that come from beyond the first cache; and the latency of the longest chain of
// results that leads from a step to the next one, through numbers that a loop carries or through
// memory. Loops within a step that are longer than what a processor looks ahead follow each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>

#include "codegen/machine.h"
#include "codegen/program.h"

namespace plait::codegen {

enum class Bound { throughput, memory, latency };

struct Prediction {
  double ns = 0;
  std::array<double, 3> shares{};  // of ns: the time of loops that each of these binds
  bool is_known = true;            // else loops of unknown length count 16 steps each time
  // The loop that takes the most: of those whose steps follow each other, where that is outermost.
  std::int64_t steps = 0;
  double step_ns = 0;

  Bound bound() const;
  // "0.21 ms (bound by latency: 1600 steps x 128 ns)"
  std::string to_string() const;
};

Prediction predict(const LoopProgram& program, const Machine& machine = {});
// Of statements of a program as if they were all of it.
double predicted_ns(const LoopProgram& program, const Block& block, const Machine& machine = {});

}  // namespace plait::codegen
