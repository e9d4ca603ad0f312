// Which elements of memory views share, and which element a view of an array shows: arithmetic of
// strides.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

using Read = loops::Formula::Read;

// Whether both are the same elements at the same indices.
bool is_same(const Read& a, const Read& b, const Sizes64& shape);
// Whether two views of one memory, of the same shape, may share an element: true where it is not
// known.
bool may_overlap(const Read& a, const Read& b, const Sizes64& shape);

// Whether a block of elements from a place on, one of them without a shape, belongs to a step of a
// loop alone: elements are outer * (stride * steps) + step * stride + inner, where inner is less
// than the stride.
bool belongs_to_step(const LoopProgram& program, const loops::Place& place, loops::Value step,
                     std::int64_t stride, std::int64_t steps, const Sizes64& shape = {},
                     const Sizes64& strides = {});

// By axis of an array: where a view of it begins, and how far each of the view's axes moves there.
struct IndexMap {
  Sizes64 offsets;
  std::vector<Sizes64> steps;
};
// Of a view with these sizes of a dense array. nothing where an index of the array is not linear in
// those of the view.
std::optional<IndexMap> index_map(std::int64_t offset, const Sizes64& strides, const Sizes64& sizes,
                                  const Sizes64& shape);
loops::Indices indices_through(const IndexMap& map, std::span<const loops::Index> indices);
Read through(const IndexMap& map, const Read& read);
// nothing where it is on no axis of the view, or on several.
std::optional<loops::Formula::Cut> through(const IndexMap& map, const loops::Formula::Cut& cut);

}  // namespace plait::codegen
