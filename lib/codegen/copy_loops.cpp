// See copy_loops.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/copy_loops.h"

#include "codegen/walk.h"

namespace plait::codegen {

using Kind = Statement::Kind;

Statement loop_of(LoopProgram& program, const Statement& copy) {
  struct Axis {
    std::int64_t size, to, from;
  };
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < copy.shape.size(); ++i) {
    const Axis axis{copy.shape[i], copy.strides[i], copy.source_strides[i]};
    if (axis.size == 1) continue;
    if (!axes.empty() && axes.back().to == axis.to * axis.size &&
        axes.back().from == axis.from * axis.size)
      axes.back() = {axes.back().size * axis.size, axis.to, axis.from};
    else
      axes.push_back(axis);
  }
  if (axes.empty()) axes.push_back({1, 0, 0});
  Statement load, store;
  load.kind = Kind::load;
  load.value = define(program, program.memories[std::size_t(copy.source_place.memory)].dtype);
  load.place = copy.source_place;
  store.kind = Kind::store;
  store.operands = {load.value};
  store.place = copy.place;
  load.source = store.source = copy.source;
  std::vector<Statement> loops;
  for (const Axis& axis : axes) {
    loops.push_back(counting(program, axis.size, copy.source));
    const Value counter = loops.back().value;
    if (axis.from != 0) load.place.terms.push_back({counter, axis.from});
    if (axis.to != 0) store.place.terms.push_back({counter, axis.to});
  }
  loops.back().is_parallel = true;
  loops.back().blocks = {{std::move(load), std::move(store)}};
  while (loops.size() > 1) {
    Statement inner = std::move(loops.back());
    loops.pop_back();
    loops.back().is_apart = true;
    loops.back().blocks = {{std::move(inner)}};
  }
  return std::move(loops.front());
}

void write_copies_out(LoopProgram& program) {
  for (Statement& s : program.body)
    if (s.kind == Kind::copy) s = loop_of(program, s);
}

}  // namespace plait::codegen
