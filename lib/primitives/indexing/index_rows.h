// The memory side of gather and scatter: the starts of windows, from rows of indices, and the runs
// of elements that form a window.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "primitives/indexing/indexing.h"

#include <plait/rules/emit.h>

#include <algorithm>
#include <optional>

namespace plait::indexing {

// The offset of a window that does not lie inside the array and is left out.
inline constexpr std::int64_t no_window = std::numeric_limits<std::int64_t>::min();

enum class Outside { clamp, skip, trust };

class IndexRows {
 public:
  static constexpr std::int64_t block = 256;  // rows per block of for_blocks
  // The rows of indices into array; window has the size along every axis that is not a batch axis.
  IndexRows(std::string_view primitive, const View& array, const View& indices,
            const Params& params, const Sizes64& window);
  std::int64_t count() const { return num_batches_ * rows_per_batch_; }
  std::int64_t num_batches() const { return num_batches_; }
  std::int64_t rows_per_batch() const { return rows_per_batch_; }
  // IndexError that names the first row whose window does not lie inside the array.
  void check() const;
  // Leaves out every window that does not start in [begin, end) along an indexed axis (given by its
  // index in "axes").
  void keep_only(int component, std::int64_t begin, std::int64_t end);
  // Whether for_blocks may give no_window.
  bool may_leave_out(Outside outside) const {
    return outside == Outside::skip ||
           std::any_of(components_.begin(), components_.end(),
                       [](const Component& component) { return component.keeps_part; });
  }
  // Rows of one index of 4 or 8 bytes each, counted in strides of the array.
  struct Line {
    const void* indices;
    DType dtype;                // int32 or int64
    std::int64_t last, stride;  // the greatest start
  };
  // The rows, where they are such and no window is left out.
  std::optional<Line> line() const;
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
  Buffer dense_;  // a dense copy of strided indices
  const void* indices_;
  DType dtype_;
  std::int64_t width_;  // of an index, in bytes
  Add add_;
  std::vector<Component> components_;
  Sizes64 batch_shape_, batch_strides_;
  std::int64_t num_batches_ = 1, rows_per_batch_ = 1;
};

// Calls inside(row, offset) for rows [begin, end), or left_out(row). An index that lies outside is
// rare: a branch costs less than moving every index inside. A stride of 1 is a constant, for the
// multiplication takes as long as the rest of the address.
template <class Inside, class LeftOut>
[[gnu::always_inline]] inline void for_starts(const IndexRows::Line& line, Outside outside,
                                              std::int64_t begin, std::int64_t end,
                                              const Inside& inside, const LeftOut& left_out) {
  const std::int64_t last = line.last;
  const auto run = [&](const auto* starts, const auto stride) __attribute__((always_inline)) {
    for (std::int64_t row = begin; row < end; ++row) {
      std::int64_t start = starts[row];
      if (std::uint64_t(start) > std::uint64_t(last)) [[unlikely]] {
        if (outside != Outside::clamp) {
          left_out(row);
          continue;
        }
        start = start < 0 ? 0 : last;
      }
      inside(row, start * stride);
    }
  };
  const auto run_of = [&](const auto* starts) __attribute__((always_inline)) {
    if (line.stride == 1)
      run(starts, std::integral_constant<std::int64_t, 1>());
    else
      run(starts, line.stride);
  };
  if (line.dtype == DType::int32)
    run_of(static_cast<const std::int32_t*>(line.indices));
  else
    run_of(static_cast<const std::int64_t*>(line.indices));
}

// A window as runs of elements, each with one stride in the array and one in the values that are
// read or written.
struct Runs {
  struct Start {
    std::int64_t array, values;
  };
  std::int64_t size = 1;                                         // elements of the window
  std::int64_t length = 1, array_stride = 1, values_stride = 1;  // of one run
  std::vector<Start> starts;
};
Runs runs_of(const Sizes64& window, const Sizes64& array_strides, const Sizes64& values_strides);

// The IndexError of mode check, for a window with this start along an axis of this size; `last` is
// the largest valid start.
[[noreturn]] void throw_outside(std::string_view primitive, int axis, std::int64_t start,
                                std::int64_t last, std::int64_t size);

// scatter's kernel.
void eval_scatter(std::span<const View> inputs, std::span<const View> outputs,
                  const Params& params);

// --- Parameters ----------------------------------------------------------------------------------

lax::IndexDimensions dimensions_of(const Params& params);
// The parameters with the given fields replaced.
Params params_of(const lax::IndexDimensions& dimensions, lax::GatherScatterMode mode,
                 std::vector<Params::Entry> others);
// The shape of the rows of indices, [b..., i...], once operand, indices and parameters agree.
// window has an entry for each axis of the operand that is not a batch axis.
Shape leading_shape(std::string_view name, const Aval& operand, const Aval& indices,
                    const Params& params, const Shape& window);
bool contains(const std::vector<int>& list, int value);
// The sizes of windows along the operand's axes that are not batch axes, from the shape of updates.
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
// The window of an array in a loop program that the only row of indices names; sizes has an entry
// for each of its axes. It has the axes of the result of gather, and of the updates of scatter.
loops::Tensor only_window(loops::Writer& w, const Equation& equation, const loops::Tensor& array,
                          const loops::Tensor& indices, const Shape& sizes, const Shape& shape);
// Where the window of a row of indices starts, along the axis that column i of them is for.
loops::Value start_of_window(loops::Writer& w, const loops::Tensor& indices,
                             std::span<const loops::Index> row, std::size_t i);
// The largest start along that axis; sizes as above, but without batch axes.
std::int64_t last_start(const loops::Tensor& array, const lax::IndexDimensions& dimensions,
                        const Shape& sizes, std::size_t i);
// The error of an eager call where a window lies outside.
void check_windows(loops::Writer& w, const Equation& equation, const loops::Tensor& array,
                   const loops::Tensor& indices, const Shape& sizes);
lax::ScatterKind scatter_kind_of(const Params& params);
// True when no two windows of a batch overlap: promised, and clipping moved none together.
bool is_disjoint(const Params& params, const Shape& indices);
// In a loop program, an element that is set, or combined with what it is updated by.
loops::Value updated(loops::Writer& w, lax::ScatterKind kind, loops::Value element,
                     loops::Value update, DType dtype, Source source);
// The result of scatter where its updates are combined in parts.
loops::Tensor scattered_in_parts(loops::Writer& w, const Equation& equation,
                                 std::span<const loops::Tensor> inputs);
// On a GPU: updates an array by many windows, side by side, each element in the order of its
// updates. False if that is not possible, or not worth it.
bool scattered_in_order(loops::Writer& w, const Equation& equation, const loops::Tensor& whole,
                        const loops::Tensor& indices, const loops::Tensor& updates);
// In how many parts the updates of an array are combined: see NOTE: [scatter order].
std::int64_t num_parts_of(const Params& params, const Shape& array, const Shape& indices,
                          const Shape& updates);
// Strides of a window's axes in dense values: 0 along collapsed ones.
Sizes64 values_strides(const Sizes64& window, const lax::IndexDimensions& dimensions);

// JAX's dimension numbers in plait's form, and the axes in which plait sees each operand and the
// result: axis i in plait is axis operand[i] (indices[i], result[i]) in JAX.
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

// Rows of indices, of which the real ones are checked: IndexError, as in mode check, for a window
// that does not lie inside the real array. Afterwards the mode is fill.
Array checked_rows(const std::string& primitive, const Array& rows, const Shape& real_rows,
                   const Masked& array, const lax::IndexDimensions& dimensions, const Shape& window,
                   const SizeValues& sizes);
// Rows of indices that are checked where live, a bool scalar, is true, and 0 elsewhere: see
// guard.h. Afterwards the mode is fill.
Array guarded_rows(const std::string& primitive, const Array& live, const Array& rows,
                   const Shape& array, const lax::IndexDimensions& dimensions, const Shape& window);
inline bool checks(const Params& params) {
  return params.text("mode") == "check" && !params.ints("axes").empty();
}
// Rows of indices into an array whose real sizes are named. A window outside the real array is, by
// mode: moved inside (clip) or given the start -1 (fill). Afterwards the mode of clip is fill,
// because no window lies inside an empty array.
Array rows_in_real_sizes(const Array& rows, const Masked& array,
                         const lax::IndexDimensions& dimensions, const Shape& window,
                         lax::GatherScatterMode mode, const SizeValues& sizes);
// Scalars as a vector, one for each component of an index, broadcast to rows; a single one stays a
// scalar.
Array by_component(const Arrays& scalars, const Array& rows);
// True when an indexed axis, or a window along it, has a named size.
bool has_ragged_axes(const Shape& array, const lax::IndexDimensions& dimensions,
                     const Shape& window);
lax::GatherScatterMode mode_of(const Params& params);

// What gather gives for an element outside: see gather.cpp.
Literal fill_literal(DType dtype, const Params& params);

}  // namespace plait::indexing
