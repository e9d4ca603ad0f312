// See overlap.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/overlap.h"

#include <algorithm>
#include <numeric>

namespace plait::codegen {
namespace {

// Whether distance = sum(d * stride), with |d| < size for each axis; axes in the order of falling
// strides.
bool is_reached(std::int64_t distance,
                std::span<const std::pair<std::int64_t, std::int64_t>> axes) {
  if (axes.empty()) return distance == 0;
  const auto [stride, size] = axes[0];
  std::int64_t rest = 0;  // what the axes after this one reach
  for (const auto& [s, n] : axes.subspan(1)) rest += s * (n - 1);
  for (std::int64_t d = (distance - rest) / stride - 1; d * stride <= distance + rest; ++d)
    if (std::abs(d) < size && is_reached(distance - d * stride, axes.subspan(1))) return true;
  return false;
}

}  // namespace

bool is_same(const Read& a, const Read& b, const Sizes64& shape) {
  if (a.is_anywhere || b.is_anywhere || !(a.place == b.place)) return false;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] > 1 && a.strides[axis] != b.strides[axis]) return false;
  return true;
}

bool may_overlap(const Read& a, const Read& b, const Sizes64& shape) {
  if (a.is_anywhere || b.is_anywhere || a.place.terms != b.place.terms) return true;
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) continue;
    if (a.strides[axis] != b.strides[axis] || a.strides[axis] == 0) return true;
    axes.emplace_back(std::abs(a.strides[axis]), shape[axis]);
  }
  std::sort(axes.rbegin(), axes.rend());
  // Of axes that overlap each other there are too many ways to a distance.
  for (std::size_t i = 0; i + 1 < axes.size(); ++i)
    if (axes[i].first < axes[i + 1].first * axes[i + 1].second) return true;
  return is_reached(std::abs(a.place.offset - b.place.offset), axes);
}

bool belongs_to_step(const LoopProgram& program, const loops::Place& place, loops::Value step,
                     std::int64_t stride, std::int64_t steps, const Sizes64& shape,
                     const Sizes64& strides) {
  const std::int64_t row = stride * steps;
  std::int64_t by_step = 0;
  __int128 low = place.offset % row, high = low;
  const auto add = [&](std::int64_t by, loops::Range range) {
    const __int128 a = __int128(range.low) * by, b = __int128(range.high) * by;
    low += std::min(a, b), high += std::max(a, b);
  };
  for (const loops::Place::Term& term : place.terms) {
    if (term.index == step) {
      by_step += term.stride;
    } else if (term.stride % row != 0) {
      const std::optional<loops::Range> range = program.range(term.index);
      if (!range) return false;
      add(term.stride, *range);
    }
  }
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (strides[axis] % row != 0) add(strides[axis], {0, shape[axis] - 1});
  return by_step == stride && low >= 0 && high < stride;
}

std::optional<IndexMap> index_map(std::int64_t offset, const Sizes64& strides, const Sizes64& sizes,
                                  const Sizes64& shape) {
  const Sizes64 dense = dense_strides(shape);
  IndexMap map;
  map.offsets.resize(shape.size(), 0);
  map.steps.assign(shape.size(), Sizes64(sizes.size(), 0));
  const auto split = [&](std::int64_t distance, const auto& digit) {
    const std::int64_t sign = distance < 0 ? -1 : 1;
    distance *= sign;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == 1) continue;
      digit(axis) = sign * (distance / dense[axis]);
      distance %= dense[axis];
    }
  };
  split(offset, [&](std::size_t axis) -> std::int64_t& { return map.offsets[axis]; });
  for (std::size_t k = 0; k < sizes.size(); ++k)
    if (sizes[k] > 1)
      split(strides[k], [&](std::size_t axis) -> std::int64_t& { return map.steps[axis][k]; });
  // Where every index stays inside, the elements are those, since each has one index.
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    std::int64_t low = map.offsets[axis], high = low;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      const std::int64_t end = map.steps[axis][k] * (sizes[k] - 1);
      low += std::min<std::int64_t>(0, end), high += std::max<std::int64_t>(0, end);
    }
    if (low < 0 || high >= shape[axis]) return {};
  }
  return map;
}

loops::Indices indices_through(const IndexMap& map, std::span<const loops::Index> indices) {
  loops::Indices inside;
  for (std::size_t axis = 0; axis < map.offsets.size(); ++axis) {
    loops::Place sum;
    sum.offset = map.offsets[axis];
    for (std::size_t k = 0; k < indices.size(); ++k)
      loops::add_index(sum, indices[k], map.steps[axis][k]);
    inside.push_back({sum.offset, std::move(sum.terms)});
  }
  return inside;
}

std::optional<loops::Formula::Cut> through(const IndexMap& map, const loops::Formula::Cut& cut) {
  const Sizes64& steps = map.steps[std::size_t(cut.axis)];
  int along = -1;
  for (std::size_t k = 0; k < steps.size(); ++k)
    if (steps[k] != 0) {
      if (along >= 0) return {};
      along = int(k);
    }
  if (along < 0) return {};
  // The first index from which on the place is behind the cut, or before it.
  const std::int64_t step = steps[std::size_t(along)],
                     distance = cut.at - map.offsets[std::size_t(cut.axis)];
  if (step > 0) return loops::Formula::Cut{along, (distance + step - 1) / step};
  return loops::Formula::Cut{along, distance / step + 1};
}

Read through(const IndexMap& map, const Read& read) {
  if (read.is_anywhere) return read;
  Read seen{read.place, Sizes64(map.steps.empty() ? 0 : map.steps[0].size(), 0)};
  for (std::size_t axis = 0; axis < map.offsets.size(); ++axis) {
    seen.place.offset += map.offsets[axis] * read.strides[axis];
    for (std::size_t k = 0; k < seen.strides.size(); ++k)
      seen.strides[k] += map.steps[axis][k] * read.strides[axis];
  }
  return seen;
}

}  // namespace plait::codegen
