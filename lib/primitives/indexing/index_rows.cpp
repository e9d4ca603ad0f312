// Window starts of gather and scatter. See index_rows.h.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/indexing/index_rows.h"

#include <plait/base/pool.h>

#include <algorithm>
#include <atomic>

namespace plait::indexing {
namespace {

template <class T>
std::int64_t to_index(T value) {
  // A uint64 beyond int64 must stay above every size.
  if constexpr (std::is_same_v<T, std::uint64_t>)
    return std::int64_t(std::min<T>(value, std::numeric_limits<std::int64_t>::max()));
  else
    return value;
}

constexpr const char* mode_names[] = {"check", "clip", "fill", "promise"};
constexpr const char* kind_names[] = {"set", "add", "mul", "min", "max"};

}  // namespace

// --- Offsets -------------------------------------------------------------------------------------

// One pass for each component: most of the time of a gather of single elements.
template <class T>
void IndexRows::add_component(const void* indices, std::int64_t step, std::int64_t count,
                              const Component& component, Outside outside, std::int64_t* offsets) {
  const T* starts = static_cast<const T*>(indices);
  const std::int64_t last = component.last;
  // Branch-free: whether a window is left out is unpredictable. Inlined, because captures might
  // otherwise alias the offsets and prevent vectorisation.
  auto add = [&](const auto stride, const auto step) __attribute__((always_inline)) {
    if (component.keeps_part) {
      const std::int64_t first = component.begin, end = std::min(component.end, last + 1);
      for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t start = to_index(starts[i * step]);
        if (outside == Outside::clamp) start = std::max<std::int64_t>(0, std::min(start, last));
        const bool inside = (start >= first) & (start < end) & (offsets[i] != no_window);
        offsets[i] = inside ? offsets[i] + start * stride : no_window;
      }
    } else if (outside == Outside::trust) {
      for (std::int64_t i = 0; i < count; ++i) offsets[i] += to_index(starts[i * step]) * stride;
    } else if (outside == Outside::clamp) {
      for (std::int64_t i = 0; i < count; ++i)
        offsets[i] +=
            std::max<std::int64_t>(0, std::min(to_index(starts[i * step]), last)) * stride;
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t start = to_index(starts[i * step]);
        const bool inside =
            (std::uint64_t(start) <= std::uint64_t(last)) & (offsets[i] != no_window);
        offsets[i] = inside ? offsets[i] + start * stride : no_window;
      }
    }
  };
  constexpr std::integral_constant<std::int64_t, 1> one;
  if (component.stride == 1 && step == 1)
    add(one, one);
  else
    add(component.stride, step);
}

IndexRows::IndexRows(std::string_view primitive, const View& array, const View& indices,
                     const Params& params, const Sizes64& window)
    : primitive_(primitive), dtype_(indices.dtype) {
  const lax::IndexDimensions dimensions = dimensions_of(params);
  if (!indices.is_dense()) dense_ = Buffer::copy_of(indices);
  indices_ = indices.is_dense() ? indices.data : dense_.data();
  width_ = size_of(indices.dtype);
  add_ = visit_dtype(indices.dtype, [](auto element) -> Add {
    using T = decltype(element);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      return &IndexRows::add_component<T>;
    else
      throw InternalError("indices are no integers");
  });
  for (int i = 0; i < dimensions.batch_dims; ++i) {
    batch_shape_.push_back(array.shape[i]);
    batch_strides_.push_back(array.strides[i]);
    num_batches_ *= array.shape[i];
  }
  for (int i = dimensions.batch_dims; i + 1 < indices.rank(); ++i)
    rows_per_batch_ *= indices.shape[i];
  for (int axis : dimensions.axes) {
    const std::int64_t size = array.shape[axis], last = size - window[axis - dimensions.batch_dims];
    components_.push_back(
        {axis, int(components_.size()), size, last, array.strides[axis], 0, size, false});
  }
}

void IndexRows::keep_only(int component, std::int64_t begin, std::int64_t end) {
  components_[component].begin = begin;
  components_[component].end = end;
  components_[component].keeps_part = true;
  // Last, because only a component that may leave a window out checks whether an earlier one did.
  std::swap(components_[component], components_.back());
}

std::optional<IndexRows::Line> IndexRows::line() const {
  const bool is_plain = components_.size() == 1 && batch_shape_.empty() &&
                        !components_[0].keeps_part && components_[0].last >= 0;
  if (!is_plain || (dtype_ != DType::int32 && dtype_ != DType::int64)) return std::nullopt;
  return Line{indices_, dtype_, components_[0].last, components_[0].stride};
}

std::int64_t IndexRows::batch_offset(std::int64_t batch) const {
  std::int64_t offset = 0;
  for (std::size_t i = batch_shape_.size(); i-- > 0; batch /= batch_shape_[i])
    offset += batch % batch_shape_[i] * batch_strides_[i];
  return offset;
}

void IndexRows::compute_offsets(std::int64_t row, std::int64_t count, Outside outside,
                                std::int64_t* offsets) const {
  if (batch_shape_.empty()) {
    std::fill_n(offsets, count, 0);
  } else {
    for (std::int64_t i = 0; i < count;) {
      const std::int64_t batch = (row + i) / rows_per_batch_, offset = batch_offset(batch);
      const std::int64_t end = std::min(count, (batch + 1) * rows_per_batch_ - row);
      std::fill(offsets + i, offsets + end, offset);
      i = end;
    }
  }
  for (const Component& component : components_) {
    if (component.last < 0) {  // an empty axis
      std::fill_n(offsets, count, no_window);
      return;
    }
    const auto step = std::int64_t(components_.size());
    add_(static_cast<const char*>(indices_) + (row * step + component.place) * width_, step, count,
         component, outside, offsets);
  }
}

namespace {

// Whether all of these lie in [0, last]; without a branch for each, so that it vectorises.
template <class T>
bool all_inside(const T* starts, std::int64_t count, std::int64_t last) {
  using U = std::make_unsigned_t<T>;
  const U greatest = U(std::min<std::int64_t>(last, std::numeric_limits<T>::max()));
  U outside = 0;
  for (std::int64_t i = 0; i < count; ++i) outside |= U(U(starts[i]) > greatest);
  return !outside;
}

bool all_inside(const IndexRows::Line& line, std::int64_t begin, std::int64_t end) {
  if (line.dtype == DType::int32)
    return all_inside(static_cast<const std::int32_t*>(line.indices) + begin, end - begin,
                      line.last);
  return all_inside(static_cast<const std::int64_t*>(line.indices) + begin, end - begin, line.last);
}

}  // namespace

void IndexRows::check() const {
  const auto line = this->line();
  // The first offending row, whatever the number of threads; the threads must not throw.
  std::atomic<std::int64_t> first{count()};
  parallel_for(count(), line ? 1 << 16 : 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    if (line && all_inside(*line, begin, end)) return;
    for_blocks(begin, end, Outside::skip,
               [&](std::int64_t row, std::int64_t count, const std::int64_t* offsets) {
                 const std::int64_t found =
                     row + (std::find(offsets, offsets + count, no_window) - offsets);
                 if (found == row + count) return;
                 std::int64_t known = first.load();
                 while (found < known && !first.compare_exchange_weak(known, found)) {
                 }
               });
  });
  if (first.load() < count()) throw_outside(first.load());
}

void IndexRows::throw_outside(std::int64_t row) const {
  const auto step = std::int64_t(components_.size());
  for (const Component& component : components_) {
    Component alone = component;
    alone.stride = 1;
    std::int64_t start = 0;
    add_(static_cast<const char*>(indices_) + (row * step + component.place) * width_, step, 1,
         alone, Outside::trust, &start);
    if (start < 0 || start > component.last)
      indexing::throw_outside(primitive_, component.axis, start, component.last, component.size);
  }
  throw InternalError("no index of this row is out of bounds");
}

void throw_outside(std::string_view primitive, int axis, std::int64_t start, std::int64_t last,
                   std::int64_t size) {
  const std::int64_t window = size - last;
  const std::string valid = last < 0 || size == 0
                                ? "the axis is empty"
                                : "use an index from 0 to " + std::to_string(last);
  throw IndexError(
      std::string(primitive) + ": index " + std::to_string(start) +
          (window == 1 ? "" : " of a window of " + std::to_string(window) + " elements") +
          " is out of bounds for axis " + std::to_string(axis) + " with size " +
          std::to_string(size),
      valid + ", or choose what happens outside with mode \"clip\" or \"fill\"");
}

loops::Tensor only_window(loops::Writer& w, const Equation& equation, const loops::Tensor& array,
                          const loops::Tensor& indices, const Shape& sizes, const Shape& shape) {
  const lax::IndexDimensions dimensions = dimensions_of(equation.params);
  const lax::GatherScatterMode mode = mode_of(equation.params);
  const std::string_view name = equation.primitive->name();
  const Shape& rows = indices.aval.shape;
  if (dimensions.batch_dims > 0 || rows.num_elements() != Dim(std::int64_t(dimensions.axes.size())))
    w.refuse("`" + std::string(name) + "` of several windows");
  if (mode == lax::GatherScatterMode::fill)
    w.refuse("`" + std::string(name) + "` of windows that may lie outside");
  const loops::Values numbers = w.elements_of(indices);
  loops::Tensor window = array;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const int axis = dimensions.axes[i];
    const std::int64_t size = array.aval.shape[axis].constant(),
                       last = size - sizes[axis].constant();
    loops::Value start = w.index(numbers[i]);
    if (mode == lax::GatherScatterMode::check)
      w.check(
          start, 0, last,
          [=](std::int64_t outside) { throw_outside(name, axis, outside, last, size); },
          equation.source);
    else
      start = w.clamped(start, 0, last);
    loops::add_index(window.place, {0, {{start, 1}}}, array.strides[std::size_t(axis)]);
  }
  window.aval.shape = shape;
  window.strides.clear();
  for (int i = 0; i + 1 < rows.rank(); ++i) window.strides.push_back(0);
  for (int axis = 0; axis < sizes.rank(); ++axis)
    if (!contains(dimensions.collapse, axis))
      window.strides.push_back(array.strides[std::size_t(axis)]);
  return window;
}

loops::Value start_of_window(loops::Writer& w, const loops::Tensor& indices,
                             std::span<const loops::Index> row, std::size_t i) {
  loops::Indices at(row.begin(), row.end());
  at.push_back({std::int64_t(i)});
  return w.index(w.element(indices, at));
}

std::int64_t last_start(const loops::Tensor& array, const lax::IndexDimensions& dimensions,
                        const Shape& sizes, std::size_t i) {
  const int axis = dimensions.axes[i];
  return array.aval.shape[axis].constant() - sizes[axis - dimensions.batch_dims].constant();
}

void check_windows(loops::Writer& w, const Equation& equation, const loops::Tensor& array,
                   const loops::Tensor& indices, const Shape& sizes) {
  const lax::IndexDimensions dimensions = dimensions_of(equation.params);
  const Shape& rows = indices.aval.shape;
  for (std::size_t i = 0; i < dimensions.axes.size(); ++i) {
    const int axis = dimensions.axes[i];
    const std::int64_t last = last_start(array, dimensions, sizes, i);
    w.check_each(
        {rows.begin(), rows.end() - 1},
        [&](std::span<const loops::Index> row) { return start_of_window(w, indices, row, i); }, 0,
        last,
        [=, name = equation.primitive->name(), size = array.aval.shape[axis].constant()](
            std::int64_t outside) { throw_outside(name, axis, outside, last, size); },
        equation.source);
  }
}

Runs runs_of(const Sizes64& window, const Sizes64& array_strides, const Sizes64& values_strides) {
  struct Loop {
    std::int64_t size, array, values;
  };
  std::vector<Loop>
      loops;  // without axes of size 1, neighbours that are contiguous on both sides merged
  Runs runs;
  for (std::size_t i = 0; i < window.size(); ++i) {
    runs.size *= window[i];
    if (window[i] == 1) continue;
    if (!loops.empty() && loops.back().array == array_strides[i] * window[i] &&
        loops.back().values == values_strides[i] * window[i])
      loops.back() = {loops.back().size * window[i], array_strides[i], values_strides[i]};
    else
      loops.push_back({window[i], array_strides[i], values_strides[i]});
  }
  if (!loops.empty()) {
    runs.length = loops.back().size;
    runs.array_stride = loops.back().array;
    runs.values_stride = loops.back().values;
    loops.pop_back();
  }
  runs.starts.push_back({0, 0});
  for (const Loop& loop : loops) {
    std::vector<Runs::Start> inner;
    inner.reserve(runs.starts.size() * loop.size);
    for (const Runs::Start& start : runs.starts)
      for (std::int64_t i = 0; i < loop.size; ++i)
        inner.push_back({start.array + i * loop.array, start.values + i * loop.values});
    runs.starts = std::move(inner);
  }
  return runs;
}

// --- Parameters ----------------------------------------------------------------------------------

bool contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

lax::IndexDimensions dimensions_of(const Params& params) {
  return {params.ints("axes"), params.ints("collapse"), int(params.integer("batch_dims"))};
}

lax::GatherScatterMode mode_of(const Params& params) {
  const std::string& mode = params.text("mode");
  for (int i = 0; i < 4; ++i)
    if (mode == mode_names[i]) return lax::GatherScatterMode(i);
  throw ValueError("there is no mode '" + mode + "' of indices out of bounds",
                   "choose check, clip, fill or promise");
}

lax::ScatterKind scatter_kind_of(const Params& params) {
  const std::string& kind = params.text("kind");
  for (int i = 0; i < 5; ++i)
    if (kind == kind_names[i]) return lax::ScatterKind(i);
  throw ValueError("scatter: there is no kind '" + kind + "'", "choose set, add, mul, min or max");
}

bool is_disjoint(const Params& params, const Shape& indices) {
  Dim rows = 1;
  for (int i = int(params.integer("batch_dims")); i + 1 < indices.rank(); ++i)
    rows = rows * indices[i];
  return less_equal(rows, 1).value_or(false) ||
         (params.flag("unique") && mode_of(params) != lax::GatherScatterMode::clip);
}

std::int64_t num_parts_of(const Params& params, const Shape& array, const Shape& indices,
                          const Shape& updates) {
  constexpr std::int64_t most_parts = 8, fewest_updates = 32768, fewest_of_each = 4;
  // Products of complex infinities with 1 are not themselves, so products have no parts.
  const std::string& kind = params.text("kind");
  if (kind == "set" || kind == "mul" || !updates.is_constant() || !array.is_constant()) return 1;
  std::int64_t num_rows = 1;
  for (int i = 0; i + 1 < indices.rank(); ++i) num_rows *= indices[i].constant();
  const std::int64_t num_updates = updates.num_elements().constant(),
                     size = array.num_elements().constant();
  // Batches and windows of several elements have other independent work.
  const bool has_single_updates = num_updates == num_rows && params.integer("batch_dims") == 0;
  if (!has_single_updates || num_updates < fewest_updates || is_disjoint(params, indices)) return 1;
  return std::clamp<std::int64_t>(num_updates / (fewest_of_each * size), 1, most_parts);
}

Params params_of(const lax::IndexDimensions& dimensions, lax::GatherScatterMode mode,
                 std::vector<Params::Entry> others) {
  others.emplace_back("axes", to_shape(dimensions.axes));
  others.emplace_back("collapse", to_shape(dimensions.collapse));
  others.emplace_back("batch_dims", Dim(dimensions.batch_dims));
  others.emplace_back("mode", std::string(mode_names[int(mode)]));
  return Params(std::move(others));
}

Shape leading_shape(std::string_view name, const Aval& operand, const Aval& indices,
                    const Params& params, const Shape& window) {
  const std::string prefix = std::string(name) + ": ";
  const lax::IndexDimensions dimensions = dimensions_of(params);
  const auto& [axes, collapse, batch_dims] = dimensions;
  mode_of(params);
  require_integer(name, indices);
  if (batch_dims < 0 || batch_dims > operand.rank() || batch_dims >= indices.rank())
    throw ShapeError(
        prefix + "an operand of shape " + text_of(operand.shape) + " and indices of shape " +
            text_of(indices.shape) + " do not share " + std::to_string(batch_dims) +
            " batch dimensions",
        "the last axis of the indices holds one index for each indexed axis, and is no batch axis");
  for (int i = 0; i < batch_dims; ++i)
    if (!(operand.shape[i] == indices.shape[i]))
      throw ShapeError(prefix + "an operand of shape " + text_of(operand.shape) +
                           " and indices of shape " + text_of(indices.shape) +
                           " differ along the batch axis " + std::to_string(i),
                       "give equal batch axes");
  if (!(indices.shape.back() == Dim(std::int64_t(axes.size()))))
    throw ShapeError(prefix + "the last axis of indices of shape " + text_of(indices.shape) +
                         " should hold one index for each of the " + std::to_string(axes.size()) +
                         " indexed axes",
                     "give indices of shape (..., " + std::to_string(axes.size()) + ")");
  for (const std::vector<int>* list : {&axes, &collapse})
    for (int axis : *list)
      if (axis < batch_dims || axis >= operand.rank() ||
          std::count(list->begin(), list->end(), axis) > 1)
        throw ShapeError(prefix + "the " + (list == &axes ? "indexed" : "collapsed") + " axes (" +
                             to_shape(*list).to_string() +
                             ") are not distinct axes of an operand of shape " +
                             text_of(operand.shape) + " with " + std::to_string(batch_dims) +
                             " batch dimensions",
                         "name axes from " + std::to_string(batch_dims) + " to " +
                             std::to_string(operand.rank() - 1) + ", each at most once");
  if (window.rank() != operand.rank() - batch_dims)
    throw ShapeError(prefix + "an operand of shape " + text_of(operand.shape) + " with " +
                         std::to_string(batch_dims) + " batch dimensions has windows of " +
                         std::to_string(operand.rank() - batch_dims) + " sizes, not (" +
                         window.to_string() + ")",
                     "give one size for each axis that is not a batch axis");
  for (int i = 0; i < window.rank(); ++i) {
    const int axis = batch_dims + i;
    auto outside = [&] {
      return ShapeError(
          axis_text(name, axis, operand) + "windows have the size " + window[i].to_string(),
          "give a size from 0 to " + operand.shape[axis].to_string());
    };
    require_order(0, window[i], outside);
    // An empty axis may be indexed, by no rows: its size is not required to be at least 1.
    if (!(window[i] == Dim(1) && contains(axes, axis)))
      require_order(window[i], operand.shape[axis], outside);
    if (contains(collapse, axis) && !(window[i] == Dim(1)))
      throw ShapeError(axis_text(name, axis, operand) + "windows of the size " +
                           window[i].to_string() + " cannot be collapsed",
                       "collapse only axes along which windows have size 1");
  }
  Shape leading = indices.shape;
  leading.pop_back();
  return leading;
}

Sizes64 values_strides(const Sizes64& window, const lax::IndexDimensions& dimensions) {
  Sizes64 strides(window.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t i = window.size(); i-- > 0;) {
    if (contains(dimensions.collapse, dimensions.batch_dims + int(i))) continue;
    strides[i] = stride;
    stride *= window[i];
  }
  return strides;
}

std::vector<int> inverse_of(std::span<const int> permutation) {
  std::vector<int> inverse(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i) inverse[permutation[i]] = int(i);
  return inverse;
}

Canonical canonical(std::string_view name, int operand_rank, int indices_rank, int result_rank,
                    const std::vector<int>& window_dims, const std::vector<int>& collapsed,
                    const std::vector<int>& index_map, const std::vector<int>& operand_batching,
                    const std::vector<int>& indices_batching) {
  auto require = [&](bool holds, const std::string& what) {
    if (!holds)
      throw ShapeError(std::string(name) + ": " + what,
                       "let each dimension play one part, as JAX's dimension numbers say");
  };
  auto axes_of = [&](const std::vector<int>& list, int rank, const std::string& what) {
    for (int axis : list)
      require(axis >= 0 && axis < rank && std::count(list.begin(), list.end(), axis) == 1,
              what + " (" + to_shape(list).to_string() + ") are not distinct axes below " +
                  std::to_string(rank));
  };
  require(indices_rank >= 1,
          "the indices are a scalar, and their last axis should hold the components of an index");
  axes_of(window_dims, result_rank, "the window dimensions");
  axes_of(collapsed, operand_rank, "the collapsed dimensions");
  axes_of(index_map, operand_rank, "the indexed dimensions");
  axes_of(operand_batching, operand_rank, "the operand's batching dimensions");
  axes_of(indices_batching, indices_rank - 1, "the indices' batching dimensions");
  require(operand_batching.size() == indices_batching.size(),
          "operand and indices have different numbers of batching dimensions");
  for (int axis : operand_batching)
    require(!contains(collapsed, axis) && !contains(index_map, axis),
            "the batching dimension " + std::to_string(axis) + " is also collapsed or indexed");
  require(int(window_dims.size() + collapsed.size() + operand_batching.size()) == operand_rank,
          std::to_string(operand_rank) +
              " operand dimensions are not window, collapsed and batching dimensions (" +
              std::to_string(window_dims.size()) + ", " + std::to_string(collapsed.size()) + ", " +
              std::to_string(operand_batching.size()) + ")");
  require(int(window_dims.size()) + indices_rank - 1 == result_rank,
          "an array of " + std::to_string(result_rank) + " dimensions does not hold " +
              std::to_string(window_dims.size()) + " window dimensions and those of the indices");

  Canonical result;
  result.operand = operand_batching;
  for (int axis = 0; axis < operand_rank; ++axis)
    if (!contains(operand_batching, axis)) result.operand.push_back(axis);
  result.indices = indices_batching;
  for (int axis = 0; axis < indices_rank; ++axis)
    if (!contains(indices_batching, axis)) result.indices.push_back(axis);
  const std::vector<int> place = inverse_of(result.operand);
  for (int axis : index_map) result.dimensions.axes.push_back(place[axis]);
  for (int axis : collapsed) result.dimensions.collapse.push_back(place[axis]);
  std::sort(result.dimensions.collapse.begin(), result.dimensions.collapse.end());
  result.dimensions.batch_dims = int(operand_batching.size());
  // The positions of the indices' dimensions among the window dimensions in JAX, in order.
  std::vector<int> others;
  for (int dim = 0; dim < result_rank; ++dim)
    if (!contains(window_dims, dim)) others.push_back(dim);
  for (int i = 0; i + 1 < indices_rank; ++i) result.result.push_back(others[result.indices[i]]);
  std::vector<int> windows = window_dims;
  std::sort(windows.begin(), windows.end());
  result.result.insert(result.result.end(), windows.begin(), windows.end());
  return result;
}

// --- Masking -------------------------------------------------------------------------------------

bool has_ragged_axes(const Shape& array, const lax::IndexDimensions& dimensions,
                     const Shape& window) {
  return std::any_of(dimensions.axes.begin(), dimensions.axes.end(), [&](int axis) {
    return !array[axis].is_constant() || !window[axis - dimensions.batch_dims].is_constant();
  });
}

Array by_component(const Arrays& scalars, const Array& rows) {
  Arrays parts;
  for (const Array& scalar : scalars)
    parts.push_back(lax::convert_element_type(scalar, rows.dtype()));
  if (parts.size() == 1) return parts[0];
  for (Array& part : parts) part = lax::reshape(part, {1});
  const int dims[] = {rows.ndim() - 1};
  return lax::broadcast_in_dim(lax::concatenate(parts, 0), rows.shape(), dims);
}

Array rows_in_real_sizes(const Array& rows, const Masked& array,
                         const lax::IndexDimensions& dimensions, const Shape& window,
                         lax::GatherScatterMode mode, const SizeValues& sizes) {
  if (dimensions.axes.empty() || mode == lax::GatherScatterMode::promise) return rows;
  Arrays greatest;
  for (int axis : dimensions.axes)
    greatest.push_back(sizes.value(array.aval.shape[axis] - window[axis - dimensions.batch_dims]));
  const Array last = by_component(greatest, rows), zero = literal_like(rows, 0);
  if (mode == lax::GatherScatterMode::clip) {
    const Array above = lax::max(rows, zero);
    return lax::min(above, last);  // -1 when the axis is empty
  }
  const Array low_enough = lax::le(rows, last);
  const Array inside = lax::bitwise_and(lax::ge(rows, zero), low_enough);
  return lax::select(inside, rows, literal_like(rows, -1));
}

}  // namespace plait::indexing
