// The third pass of compilation: where every value lies in memory. See plan.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "partition.h"

namespace plait::compile_passes {

// A view of a segment: memory that is known only when the program is called.
struct PlannedView {
  enum class Segment { arena, input, output, constant } segment = Segment::arena;
  int index = 0;  // which input, output or constant
  std::int64_t byte_offset = 0;
  View view;  // data: null
};

struct Step {
  std::unique_ptr<Kernel> kernel;
  std::string_view backend;
  std::vector<PlannedView> inputs, outputs;
  std::int64_t scratch_offset = 0;  // in the arena
  Jaxpr program;                    // its equations, with their lines
  // For explain: the equations, what other backends say of them, and the programs that they hold.
  struct Body {
    std::string label;
    Jaxpr program;
  };
  std::string names, refusals;
  std::vector<Body> bodies;
};

// Memory that is allocated for a result; several results may show it.
struct OutputStorage {
  std::int64_t bytes = 0;
  bool is_stack = false;
  std::optional<int> donor;  // an input whose memory it may take over, when that is unique
};

struct Plan {
  std::vector<Aval> inputs, outputs;
  std::vector<Step> steps;
  std::vector<OutputStorage> storages;
  std::vector<PlannedView> results;  // segments input, output or constant
  std::vector<Buffer> constants;     // literals that kernels or callers read as memory
  std::int64_t arena_bytes = 0;
  std::vector<std::int64_t> arena_stacks;  // offsets of handles, which share their place with none
};

// donate: by input, whether its memory may be taken over; empty for none. between is called before
// each kernel is compiled, while no lock is held.
Plan make_plan(const Jaxpr& program, Partition partition, const std::vector<bool>& donate,
               const std::function<void()>& between);

}  // namespace plait::compile_passes
