// The memory side of gather and scatter: where windows start, as rows of indices say, and the runs
// of elements that a window is made of.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/indexing.h"

#include <algorithm>

namespace plait::indexing {

// The offset of a window that does not lie inside the array and is left out.
inline constexpr std::int64_t no_window = std::numeric_limits<std::int64_t>::min();

enum class Outside { clamp, skip, trust };

class IndexRows {
 public:
  static constexpr std::int64_t block = 256;  // rows that for_blocks gives at once
  // The rows of indices into array; window has the size along every axis that is not a batch axis.
  IndexRows(std::string_view primitive, const View& array, const View& indices,
            const Params& params, const Sizes64& window);
  std::int64_t count() const { return num_batches_ * rows_per_batch_; }
  std::int64_t num_batches() const { return num_batches_; }
  std::int64_t rows_per_batch() const { return rows_per_batch_; }
  // IndexError that names the first row whose window does not lie inside the array.
  void check() const;
  // Leaves out every window that does not start in [begin, end) along an indexed axis (by its place
  // in "axes").
  void keep_only(int component, std::int64_t begin, std::int64_t end);
  // Whether for_blocks may give no_window.
  bool may_leave_out(Outside outside) const {
    return outside == Outside::skip ||
           std::any_of(components_.begin(), components_.end(),
                       [](const Component& component) { return component.keeps_part; });
  }
  // Calls body(row, count, offsets) on consecutive blocks of rows, with the offset in elements of
  // the window of each.
  template <class Body>
  void for_blocks(std::int64_t begin, std::int64_t end, Outside outside, const Body& body) const {
    std::int64_t offsets[block];
    for (std::int64_t row = begin; row < end; row += block) {
      const std::int64_t count = std::min(block, end - row);
      compute_offsets(row, count, outside, offsets);
      body(row, count, static_cast<const std::int64_t*>(offsets));
    }
  }

 private:
  struct Component {
    int axis, place;                  // of the operand; in a row of indices
    std::int64_t size, last, stride;  // of the axis; last is the greatest start
    std::int64_t begin, end;          // see keep_only
    bool keeps_part;
  };
  // Adds start * stride to the offsets of rows.
  using Add = void (*)(const void* indices, std::int64_t step, std::int64_t count,
                       const Component& component, Outside outside, std::int64_t* offsets);
  template <class T>
  static void add_component(const void* indices, std::int64_t step, std::int64_t count,
                            const Component& component, Outside outside, std::int64_t* offsets);
  void compute_offsets(std::int64_t row, std::int64_t count, Outside outside,
                       std::int64_t* offsets) const;
  std::int64_t batch_offset(std::int64_t batch) const;
  [[noreturn]] void throw_outside(std::int64_t row) const;

  std::string_view primitive_;
  Buffer dense_;  // of indices that are not
  const void* indices_;
  std::int64_t width_;  // of an index, in bytes
  Add add_;
  std::vector<Component> components_;
  Sizes64 batch_shape_, batch_strides_;
  std::int64_t num_batches_ = 1, rows_per_batch_ = 1;
};

// A window as runs of elements, each at one stride in the array and in the values that are read or
// written there.
struct Runs {
  struct Start {
    std::int64_t array, values;
  };
  std::int64_t size = 1;                                         // elements of the window
  std::int64_t length = 1, array_stride = 1, values_stride = 1;  // of one run
  std::vector<Start> starts;
};
Runs runs_of(const Sizes64& window, const Sizes64& array_strides, const Sizes64& values_strides);

// The IndexError of mode check: a window that starts there along an axis of that size, where `last`
// is the greatest start.
[[noreturn]] void throw_outside(std::string_view primitive, int axis, std::int64_t start,
                                std::int64_t last, std::int64_t size);

// scatter's kernel.
void eval_scatter(std::span<const View> inputs, std::span<const View> outputs,
                  const Params& params);

// --- Parameters ----------------------------------------------------------------------------------

lax::IndexDimensions dimensions_of(const Params& params);
// These parameters with others.
Params params_of(const lax::IndexDimensions& dimensions, lax::GatherScatterMode mode,
                 std::vector<Params::Entry> others);
// The shape of one index row's place, [b..., i...], once operand, indices and parameters agree.
// window has an entry for each axis of the operand that is not a batch axis.
Shape leading_shape(std::string_view name, const Aval& operand, const Aval& indices,
                    const Params& params, const Shape& window);
bool contains(const std::vector<int>& list, int value);
// The sizes of windows along the axes of an operand that are no batch axes, from the shape of
// updates.
template <class List>
List window_sizes(int operand_rank, const List& updates, const lax::IndexDimensions& dimensions) {
  List sizes;
  const int kept = operand_rank - dimensions.batch_dims - int(dimensions.collapse.size());
  std::size_t next = updates.size() - std::size_t(std::max(0, std::min(kept, int(updates.size()))));
  for (int axis = dimensions.batch_dims; axis < operand_rank; ++axis)
    sizes.push_back(
        contains(dimensions.collapse, axis) || next >= updates.size() ? 1 : updates[next++]);
  return sizes;
}
lax::ScatterKind scatter_kind_of(const Params& params);
// True when no two windows of a batch overlap: promised, and no two were moved to one place.
bool is_disjoint(const Params& params, const Shape& indices);
// Strides of a window's axes in dense values: 0 along collapsed ones.
Sizes64 values_strides(const Sizes64& window, const lax::IndexDimensions& dimensions);

// JAX's dimension numbers as ours, and the axes that each operand and the result are seen with:
// axis i of what we take and give is axis operand[i] (indices[i], result[i]) of what JAX does.
struct Canonical {
  lax::IndexDimensions dimensions;
  std::vector<int> operand, indices, result;
};
Canonical canonical(std::string_view name, int operand_rank, int indices_rank, int result_rank,
                    const std::vector<int>& window_dims, const std::vector<int>& collapsed,
                    const std::vector<int>& index_map, const std::vector<int>& operand_batching,
                    const std::vector<int>& indices_batching);
std::vector<int> inverse_of(std::span<const int> permutation);

// --- Masking -------------------------------------------------------------------------------------

// Rows of indices, the real ones among them checked: IndexError, as of mode check, for a window
// that does not lie inside the real array. The mode is fill from then on.
Array checked_rows(const std::string& primitive, const Array& rows, const Shape& real_rows,
                   const Masked& array, const lax::IndexDimensions& dimensions, const Shape& window,
                   const SizeValues& sizes);
// Rows of indices that are checked where live, a bool scalar, is true, and 0 elsewhere: see
// guard.h. The mode is fill from then on.
Array guarded_rows(const std::string& primitive, const Array& live, const Array& rows,
                   const Shape& array, const lax::IndexDimensions& dimensions, const Shape& window);
inline bool checks(const Params& params) {
  return params.text("mode") == "check" && !params.ints("axes").empty();
}
// Rows of indices of an array whose real sizes are named. Windows outside the real array are, by
// mode: moved inside (clip) or made to start at -1 (fill). For clip, the mode is fill from then on:
// nothing lies inside an array that is empty.
Array rows_in_real_sizes(const Array& rows, const Masked& array,
                         const lax::IndexDimensions& dimensions, const Shape& window,
                         lax::GatherScatterMode mode, const SizeValues& sizes);
// Scalars as a vector, one for each component of an index, broadcast to rows; or the only one.
Array by_component(const Arrays& scalars, const Array& rows);
// True when an indexed axis, or a window along it, has a named size.
bool has_ragged_axes(const Shape& array, const lax::IndexDimensions& dimensions,
                     const Shape& window);
lax::GatherScatterMode mode_of(const Params& params);

}  // namespace plait::indexing
