// Plans: the steps of an executable, and the location of every value in memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>
#include <plait/run/executable.h>
#include <plait/run/kernel.h>

#include <functional>
#include <optional>

namespace plait::compile_passes {

// A view of a segment, whose memory is known only when the program is called.
struct PlannedView {
  // handles: those of stacks, for a device; on the CPU they lie in the arena.
  enum class Segment { arena, input, output, constant, handles } segment = Segment::arena;
  int index = 0;  // of the input, output or constant
  std::int64_t byte_offset = 0;
  View view;  // data: null
};

struct Step {
  std::unique_ptr<Kernel> kernel;
  std::string_view backend;
  std::vector<PlannedView> inputs, outputs;
  std::int64_t scratch_offset = 0;  // in the arena
  Jaxpr program;                    // its equations, with their lines
  // For explain: the names of the equations, the refusals of other backends, and the programs that
  // the step holds.
  struct Body {
    std::string label;
    std::function<std::shared_ptr<const Executable>()> executable;
  };
  std::string names, refusals;
  std::vector<Body> bodies;
};

// Memory that is allocated for a result; several results may be views of it.
struct OutputStorage {
  std::int64_t bytes = 0;
  bool is_stack = false;
  std::optional<int> donor;  // an input whose memory it may reuse, if that has no other owner
  bool is_carry = false;     // the donor is a carry: sessions alone may be told to reuse it
};

struct Plan {
  std::vector<Aval> inputs, outputs;
  std::size_t num_carries = 0;
  std::vector<Step> steps;
  std::vector<OutputStorage> storages;
  std::vector<PlannedView> results;   // segments input, output or constant
  std::vector<Buffer> constants;      // what kernels or callers read as memory: literals, and what
                                      // no input changes
  std::int64_t input_free_bytes = 0;  // of the latter
  std::int64_t arena_bytes = 0;
  std::vector<std::int64_t> arena_stacks;  // offsets of stack handles, whose memory is never shared
  std::size_t num_handles = 0;             // in their own segment
};

}  // namespace plait::compile_passes
