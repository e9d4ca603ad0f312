// How the loops of a nest lie over its shape and its inputs. See point_writer.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "point_writer.h"

namespace plait::llvm {
namespace {

using Role = PointLayout::Role;
using Kind = PointNest::Kind;

// By axis.
std::vector<Role> roles_of(const PointNest& nest) {
  const int rank = int(nest.shape.size());
  std::vector<Role> roles(rank, Role::outer);
  if (nest.kind == Kind::map) return roles;
  const std::vector<int> reduced = first_axes(nest.shape, nest.axes);
  for (int axis = reduced.empty() ? rank : reduced[0]; axis < rank; ++axis)
    roles[axis] = Role::inner;
  for (int axis : reduced) roles[axis] = Role::reduced;
  return roles;
}

// The strides of memory that holds a view's elements once, those along the axes of a role side by
// side.
Sizes64 packed_strides(const Sizes64& shape, const Sizes64& strides, const std::vector<Role>& roles,
                       Role inner) {
  Sizes64 packed(shape.size(), 0);
  std::int64_t step = 1;
  for (const bool is_inner : {true, false})
    for (int axis = int(shape.size()); axis-- > 0;)
      if ((roles[axis] == inner) == is_inner && strides[axis] != 0 && shape[axis] != 1) {
        packed[axis] = step;
        step *= shape[axis];
      }
  return packed;
}

// The axes of a view in the order in which packed_strides lays them out.
View packed_view(const View& view, const Sizes64& packed) {
  std::vector<int> axes;
  for (int axis = 0; axis < int(packed.size()); ++axis)
    if (packed[axis] != 0) axes.push_back(axis);
  std::sort(axes.begin(), axes.end(), [&](int a, int b) { return packed[a] > packed[b]; });
  View result{nullptr, view.dtype, {}, {}};
  for (int axis : axes) {
    result.shape.push_back(view.shape[axis]);
    result.strides.push_back(view.strides[axis]);
  }
  return result;
}

class LayOut {
 public:
  LayOut(const JaxprData& group, const PointNest& nest, std::span<const Sizes64> strides)
      : group_(group), nest_(nest), roles_(roles_of(nest)) {
    layout_.strides.assign(strides.begin(), strides.end());
    layout_.packed.resize(strides.size());
    for (int i = 0; i < group.num_binders; ++i)
      is_full_.push_back(group.avals[i].shape.to_sizes() == nest.shape);
    is_plain_ = is_plain(group, nest);
  }

  PointLayout run() {
    pack();
    count();
    return std::move(layout_);
  }

 private:
  Sizes64& strides(int input) { return layout_.strides[input]; }

  // The last axis of a role that is longer than 1, or -1.
  int last_axis(Role role) const {
    for (int axis = int(roles_.size()); axis-- > 0;)
      if (roles_[axis] == role && nest_.shape[axis] != 1) return axis;
    return -1;
  }

  Role lane_role() const {
    return nest_.kind == Kind::map    ? Role::outer
           : nest_.kind == Kind::rows ? Role::reduced
                                      : Role::inner;
  }

  // Copies what does not lie along the lanes, or cannot be followed along rows of several axes.
  void pack() {
    const int lane = last_axis(lane_role());
    if (lane < 0) return;
    for (int i = 0; i < group_.num_binders; ++i) {
      if (!is_full_[i]) continue;
      const std::int64_t step = strides(i)[lane];
      const bool follows = nest_.kind != Kind::rows || merges(i, Role::reduced);
      if (step >= -1 && step <= 1 && follows) continue;
      const Sizes64 packed = follows ? packed_strides(nest_.shape, strides(i), roles_, lane_role())
                                     : dense_strides(nest_.shape);
      layout_.packed[i] =
          packed_view(View{nullptr, group_.avals[i].dtype, nest_.shape, strides(i)}, packed);
      strides(i) = packed;
    }
  }

  // Whether an input's elements along the axes of a role lie at one stride.
  bool merges(int input, Role role) {
    int before = -1;
    for (int axis = 0; axis < int(roles_.size()); ++axis) {
      if (roles_[axis] != role || nest_.shape[axis] == 1) continue;
      if (before >= 0 && strides(input)[before] != strides(input)[axis] * nest_.shape[axis])
        return false;
      before = axis;
    }
    return true;
  }

  void count() {
    std::vector<Sizes64> merged(layout_.strides.size());
    int before = -1;
    for (int axis = 0; axis < int(nest_.shape.size()); ++axis) {
      const std::int64_t size = nest_.shape[axis];
      if (size == 1) {
        if (!is_plain_) layout_.counter_of.push_back(-1);
        continue;
      }
      bool joins = is_plain_ && before >= 0 && roles_[before] == roles_[axis];
      for (int i = 0; joins && i < group_.num_binders; ++i)
        joins = !is_full_[i] || strides(i)[before] == strides(i)[axis] * size;
      if (joins) {
        layout_.counters.back().size *= size;
        for (int i = 0; i < group_.num_binders; ++i)
          if (is_full_[i]) merged[i].back() = strides(i)[axis];
      } else {
        layout_.counter_of.push_back(int(layout_.counters.size()));
        layout_.counters.push_back({size, roles_[axis]});
        for (int i = 0; i < group_.num_binders; ++i)
          if (is_full_[i]) merged[i].push_back(strides(i)[axis]);
      }
      before = axis;
    }
    if (is_plain_)
      for (int i = 0; i < group_.num_binders; ++i)
        if (is_full_[i]) strides(i) = merged[i];
    choose_lane();
  }

  void choose_lane() {
    const Role role = lane_role();
    layout_.lane = -1;
    for (int i = 0; i < int(layout_.counters.size()); ++i)
      if (layout_.counters[i].role == role) layout_.lane = i;
    if (layout_.lane < 0) {  // one element
      layout_.lane = int(layout_.counters.size());
      layout_.counters.push_back({1, role});
    }
    layout_.lane_size = layout_.counters[layout_.lane].size;
  }

  const JaxprData& group_;
  const PointNest& nest_;
  const std::vector<Role> roles_;
  std::vector<bool> is_full_;  // by input: of the nest's shape
  bool is_plain_ = false;
  PointLayout layout_;
};

}  // namespace

std::vector<int> PointLayout::with_role(Role role) const {
  std::vector<int> found;
  for (int i = 0; i < int(counters.size()); ++i)
    if (counters[i].role == role) found.push_back(i);
  return found;
}

std::int64_t PointLayout::count(Role role) const {
  std::int64_t product = 1;
  for (const Counter& counter : counters)
    if (counter.role == role) product *= counter.size;
  return product;
}

PointLayout lay_out(const JaxprData& group, const PointNest& nest,
                    std::span<const Sizes64> strides) {
  return LayOut(group, nest, strides).run();
}

PointUnits units_of(const PointNest& nest, const PointLayout& layout, int lanes) {
  constexpr std::int64_t wide = 2048, few = 64;
  PointUnits units;
  const std::int64_t outer = layout.count(Role::outer);
  if (nest.kind == Kind::rows) {
    units.blocks = nest.stages[0].num_blocks();
    units.count = outer * units.blocks;
    return units;
  }
  units.tile = layout.lane_size;
  const bool is_map = nest.kind == Kind::map;
  const std::int64_t rows =
      is_map ? outer / layout.lane_size : outer * layout.count(Role::inner) / layout.lane_size;
  if (!is_map) units.blocks = nest.stages[0].num_blocks();
  if (units.tile > wide && (!is_map || rows < few)) units.tile = (wide + lanes - 1) / lanes * lanes;
  units.tiles = (layout.lane_size + units.tile - 1) / units.tile;
  units.count = rows * units.blocks * units.tiles;
  return units;
}

bool is_direct(const PointNest& nest) {
  return nest.stages.size() == 1 && nest.stages[0].num_blocks() == 1;
}

}  // namespace plait::llvm
