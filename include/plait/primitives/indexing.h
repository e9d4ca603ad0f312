// Functions that cut, join and index arrays: slices and windows, padding, gather and scatter. Part
// of the catalogue in primitives.h; names and argument order are JAX's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

namespace plait {

// A list of arrays as an argument of a public function, with the line of the user's expression.
class Operands : public Arrays {
 public:
  Operands(Arrays arrays, const char* file = PLAIT_HERE_FILE, int line = PLAIT_HERE_LINE)  // NOLINT
      : Arrays(std::move(arrays)) {
    if (file) Source::remember(file, line);
  }
  Operands(std::initializer_list<Array> arrays, const char* file = PLAIT_HERE_FILE,  // NOLINT
           int line = PLAIT_HERE_LINE)
      : Arrays(arrays) {
    if (file) Source::remember(file, line);
  }
};

namespace lax {

// --- Fixed windows -------------------------------------------------------------------------------

// Elements start, start + stride, ... below limit along every axis; strides are 1 when not given.
Array slice(Operand operand, const Shape& start_indices, const Shape& limit_indices,
            const Shape& strides = {});
// The same along one axis. Without a start or limit, to that end; negative integers count from the
// end.
Array slice_in_dim(Operand operand, std::optional<Dim> start_index, std::optional<Dim> limit_index,
                   Dim stride = 1, int axis = 0);
Array index_in_dim(Operand operand, std::int64_t index, int axis = 0, bool keepdims = true);

struct Padding {
  Dim low = 0, high = 0;  // elements added before and after; negative: removed
  Dim interior = 0;       // elements added between any two
};
Array pad(Operand operand, Operand padding_value, const std::vector<Padding>& padding_config);

Array concatenate(Operands operands, int dimension);
// Consecutive parts along an axis.
Arrays split(Operand operand, const Shape& sizes, int axis = 0);
// Elements in reverse order along some axes.
Array rev(Operand operand, std::span<const int> dimensions);

// --- Windows at dynamic positions ----------------------------------------------------------------

// Whether a start below 0 counts from the end of its axis. Starts are then clamped, so that the
// window lies inside the array.
enum class NegativeIndices { wrap, clamp };

Array dynamic_slice(Operand operand, Operands start_indices, const Shape& slice_sizes,
                    NegativeIndices negative = NegativeIndices::wrap);
Array dynamic_update_slice(Operand operand, Operand update, Operands start_indices,
                           NegativeIndices negative = NegativeIndices::wrap);
Array dynamic_slice_in_dim(Operand operand, Operand start_index, Dim slice_size, int axis = 0,
                           NegativeIndices negative = NegativeIndices::wrap);
Array dynamic_index_in_dim(Operand operand, Operand index, int axis = 0, bool keepdims = true,
                           NegativeIndices negative = NegativeIndices::wrap);
Array dynamic_update_slice_in_dim(Operand operand, Operand update, Operand start_index, int axis,
                                  NegativeIndices negative = NegativeIndices::wrap);
Array dynamic_update_index_in_dim(Operand operand, Operand update, Operand index, int axis,
                                  NegativeIndices negative = NegativeIndices::wrap);

// --- Windows at many positions -------------------------------------------------------------------

// What happens to a window that does not lie inside the array. check: an IndexError. clip: the
// nearest window that does. fill: a window of the fill value (gather) or no update (scatter).
// promise: the caller promises that there is none, and nothing is checked.
enum class GatherScatterMode { check, clip, fill, promise };

// The meaning of the rows of indices: indices[..., m] is where a window starts along axes[m] of the
// operand; windows start at 0 along the other axes. Windows have size 1 along the axes in collapse,
// which are dropped. The first batch_dims axes of operand and indices are batch axes that both
// share.
struct IndexDimensions {
  std::vector<int> axes, collapse;
  int batch_dims = 0;
};

// result[b..., i..., w...] = operand[b..., start(indices[b..., i..., :]) + w]. slice_sizes has an
// entry for each axis of the operand that is not a batch axis. The default fill value is NaN, the
// smallest signed or largest unsigned integer, or true.
Array gather(Operand operand, Operand indices, const IndexDimensions& dimensions,
             const Shape& slice_sizes, GatherScatterMode mode = GatherScatterMode::check,
             std::optional<double> fill_value = {});

struct ScatterOptions {
  GatherScatterMode mode = GatherScatterMode::check;
  bool unique_indices = false;      // promises that no two windows overlap
  bool indices_are_sorted = false;  // promises that rows of indices do not descend
};
enum class ScatterKind { set, add, mul, min, max };

// The operand with updates, of the shape that gather would give, combined into the windows that
// gather would read. Windows are applied in row-major order of their indices: where two set an
// element, the last one wins.
Array scatter(Operand operand, Operand indices, Operand updates, const IndexDimensions& dimensions,
              ScatterKind kind, const ScatterOptions& options = {});

// JAX's dimension numbers, which let the axes of results and updates stand in any order.
struct GatherDimensionNumbers {
  std::vector<int> offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims,
      start_indices_batching_dims;
};
struct ScatterDimensionNumbers {
  std::vector<int> update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims,
      operand_batching_dims, scatter_indices_batching_dims;
};
// slice_sizes has an entry for every axis of the operand.
Array gather(Operand operand, Operand start_indices,
             const GatherDimensionNumbers& dimension_numbers, const Shape& slice_sizes,
             GatherScatterMode mode = GatherScatterMode::check,
             std::optional<double> fill_value = {});
Array scatter(Operand operand, Operand scatter_indices, Operand updates,
              const ScatterDimensionNumbers& dimension_numbers, const ScatterOptions& options = {});
Array scatter_add(Operand operand, Operand scatter_indices, Operand updates,
                  const ScatterDimensionNumbers& dimension_numbers,
                  const ScatterOptions& options = {});
Array scatter_mul(Operand operand, Operand scatter_indices, Operand updates,
                  const ScatterDimensionNumbers& dimension_numbers,
                  const ScatterOptions& options = {});
Array scatter_min(Operand operand, Operand scatter_indices, Operand updates,
                  const ScatterDimensionNumbers& dimension_numbers,
                  const ScatterOptions& options = {});
Array scatter_max(Operand operand, Operand scatter_indices, Operand updates,
                  const ScatterDimensionNumbers& dimension_numbers,
                  const ScatterOptions& options = {});

}  // namespace lax
}  // namespace plait
