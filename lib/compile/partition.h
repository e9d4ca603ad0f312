// Partitioning, the step after the passes: which backend runs which equations, and in what order.
// See partition.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

namespace plait::compile_passes {

// How a var lies in memory: as a view of its root. A var is its own root unless an equation with an
// Alias rule computes it.
struct Layout {
  int root = -1;
  Sizes64 shape, strides;
  std::int64_t byte_offset = 0;
  bool is_dense() const { return View{nullptr, DType::bool_, shape, strides}.is_dense(); }
};

struct Group {
  const Backend* backend = nullptr;  // null: a barrier, which only orders
  std::vector<int> equations;
  std::vector<int> views;      // views through which members read members (Alias)
  std::string refusals;        // why preferred backends refused it: "name: reason; ..."
  bool is_input_free = false;  // see input_free.h
  Jaxpr jaxpr;                 // what the backend compiles
  std::vector<Atom> inputs;    // of the program, for the binders of jaxpr
  std::vector<Var> outputs;
};

struct Partition {
  std::vector<Layout> layouts;  // by var
  std::vector<bool> is_alias;   // by equation: whether it is a view, which costs nothing
  std::vector<std::pair<int, Literal>> constants;  // roots that are one literal, read as memory
  std::vector<Group> groups;                       // in the order in which they run
};

Partition partition_program(const Jaxpr& program, std::span<const Backend* const> backends,
                            Device device);

}  // namespace plait::compile_passes
