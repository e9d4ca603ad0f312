// Merging the loops of a kernel. See nest.h.
// SPDX-License-Identifier: Apache-2.0
#include "nest.h"

#include <plait/base/pool.h>
#include <plait/primitives/kernels.h>

#include <algorithm>

namespace plait::llvm {
namespace {

bool is_splat(const Sizes64& strides) {
  return std::all_of(strides.begin(), strides.end(), [](std::int64_t s) { return s == 0; });
}

// Loops over a shape without those of one iteration, neighbours merged where every input's memory
// goes on from one to the next.
Nest merge(const Sizes64& shape, std::span<const Sizes64> strides) {
  Nest nest;
  nest.strides.resize(strides.size());
  for (int axis = 0; axis < int(shape.size()); ++axis) {
    const std::int64_t size = shape[axis];
    if (size == 1) continue;
    bool joins = !nest.loops.empty();
    for (std::size_t i = 0; joins && i < strides.size(); ++i)
      joins = nest.strides[i].back() == strides[i][axis] * size;
    if (joins)
      nest.loops.back() *= size;
    else
      nest.loops.push_back(size);
    for (std::size_t i = 0; i < strides.size(); ++i) {
      if (joins)
        nest.strides[i].back() = strides[i][axis];
      else
        nest.strides[i].push_back(strides[i][axis]);
    }
  }
  return nest;
}

}  // namespace

Nest make_nest(const Sizes64& shape, std::span<const Sizes64> input_strides,
               std::int64_t min_inner) {
  const Sizes64 dense = dense_strides(shape);
  std::vector<Sizes64> strides;
  for (const Sizes64& given : input_strides) {
    Sizes64 mine = given.empty() ? Sizes64(shape.size(), 0) : given;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      if (shape[axis] == 1) mine[axis] = 0;
    strides.push_back(std::move(mine));
  }
  std::vector<bool> packed(strides.size(), false);
  // Twice: what is packed may let loops merge, and the innermost one is another then.
  for (int round = 0;; ++round) {
    std::vector<Sizes64> seen = strides;
    for (std::size_t i = 0; i < seen.size(); ++i)
      if (packed[i]) seen[i] = dense;
    seen.push_back(dense);  // outputs
    Nest nest = merge(shape, seen);
    nest.strides.pop_back();
    bool changed = false;
    const bool is_short = nest.loops.size() > 1 && nest.loops.back() < min_inner;
    for (std::size_t i = 0; i < strides.size(); ++i) {
      if (packed[i] || is_splat(strides[i]) || nest.loops.empty()) continue;
      const bool fits = nest.strides[i].back() == 1 || nest.strides[i].back() == 0;
      Sizes64 contiguous = dense_strides(nest.loops);
      if (fits && (!is_short || nest.strides[i] == contiguous)) continue;
      packed[i] = changed = true;
    }
    if (changed && round < 8) continue;
    for (std::size_t i = 0; i < strides.size(); ++i)
      nest.access.push_back(packed[i]               ? Access::packed
                            : is_splat(strides[i])  ? Access::splat
                            : nest.loops.size() > 1 ? Access::rows
                                                    : Access::dense);
    return nest;
  }
}

void* pack(const View& view, char* dst) {
  copy_elements(view, View{dst, view.dtype, view.shape, dense_strides(view.shape)});
  return dst;
}

void* pack_part(const View& view, int axis, std::int64_t first, std::int64_t count,
                std::int64_t elements, char* dst) {
  const std::int64_t size = size_of(view.dtype);
  View part = view;
  part.data = part.as<char>() + first * part.strides[axis] * size;
  part.shape[axis] = count;
  return static_cast<char*>(pack(part, dst)) - first * elements * size;
}

}  // namespace plait::llvm
