// scatter's kernel: combines rows of updates into an array, on any number of threads.
//
// NOTE: [scatter order] Each element combines its updates in row-major order of their indices,
// whatever the number of threads: work is divided so that no element belongs to two threads. Many
// single updates of a small array are divided in parts instead, each of which is combined in that
// order into an array of its own, and then these in the order of the parts. Their number depends on
// shapes alone (num_parts_of). So sums are deterministic to the bit, and set, which has no parts,
// is a linear function of operand and updates.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/pool.h>

#include "primitives/bytes16.h"
#include "primitives/elementwise/wrapping.h"
#include "primitives/indexing/index_rows.h"

#include <algorithm>
#include <cstring>

namespace plait::indexing {
namespace {

using Kind = lax::ScatterKind;
using Mode = lax::GatherScatterMode;

// What changes no other operand: parts begin with it. Real zeros are negative, for -0 + 0 is 0.
template <class V>
V nothing_to_add() {
  if constexpr (std::is_integral_v<V>)
    return V(0);
  else if constexpr (std::is_floating_point_v<V>)
    return V(-0.0);
  else
    return V(-0.0, -0.0);
}
// The greatest number, or the least.
template <class V>
V extreme(int sign) {
  using Limits = std::numeric_limits<V>;
  if constexpr (std::is_integral_v<V>)
    return sign > 0 ? Limits::max() : Limits::min();
  else
    return V(sign) * Limits::infinity();
}

struct Set {
  template <class V>
  static V apply(V, V update) {
    return update;
  }
};
struct Add {
  template <class V>
  static V identity() {
    return nothing_to_add<V>();
  }
  template <class V>
  static V apply(V x, V update) {
    if constexpr (std::is_same_v<V, bool>)
      return x || update;
    else if constexpr (std::is_integral_v<V>)
      return V(std::uint64_t(x) + std::uint64_t(update));
    else
      return x + update;
  }
};
struct Multiply {
  template <class V>
  static V apply(V x, V update) {
    if constexpr (std::is_same_v<V, bool>)
      return x && update;
    else if constexpr (std::is_integral_v<V>)
      return V(std::uint64_t(x) * std::uint64_t(update));
    else
      return product(x, update);
  }
};
struct Minimum {
  template <class V>
  static V identity() {
    return extreme<V>(1);
  }
  template <class V>
  static V apply(V x, V update) {
    if constexpr (std::is_integral_v<V>)
      return x < update ? x : update;
    else
      return math::select(!(x == x), x, math::select(update >= x, x, update));
  }
};
struct Maximum {
  template <class V>
  static V identity() {
    return extreme<V>(-1);
  }
  template <class V>
  static V apply(V x, V update) {
    if constexpr (std::is_integral_v<V>)
      return x > update ? x : update;
    else
      return math::select(!(x == x), x, math::select(update <= x, x, update));
  }
};

template <class Op, class T>
void combine(T& x, const T& update) {
  if constexpr (std::is_same_v<Op, Set>)
    x = update;
  else
    x = T(Op::apply(detail::Compute<T>(x), detail::Compute<T>(update)));
}

template <class Op, class T>
void combine_run(T* dst, std::int64_t dst_stride, const T* src, std::int64_t src_stride,
                 std::int64_t n) {
  std::int64_t i = 0;
  if (dst_stride == 1 && src_stride == 1) {
    if constexpr (std::is_same_v<Op, Set>) {
      std::memcpy(dst, src, n * sizeof(T));
      return;
    } else if constexpr (detail::lanes<T> > 1) {
      constexpr int lanes = detail::lanes<T>;
      for (; i + lanes <= n; i += lanes)
        detail::store<T>(
            Op::apply(detail::load<T, lanes>(dst + i), detail::load<T, lanes>(src + i)), dst + i);
    }
  }
  for (; i < n; ++i) combine<Op>(dst[i * dst_stride], src[i * src_stride]);
}

// Windows of an array and their rows of updates: row i for window i where rows is null.
struct Windows {
  const std::int64_t *offsets, *rows;
  std::int64_t count;
};

// Selects the windows of a thread by offset. Branch-free: the selection is unpredictable.
struct KeptWindows : Windows {
  KeptWindows(const std::int64_t* all, std::int64_t num_rows) : Windows{places, numbers, 0} {
    for (std::int64_t i = 0; i < num_rows; ++i) {
      places[count] = all[i];
      numbers[count] = i;
      count += all[i] != no_window;
    }
  }
  KeptWindows(const KeptWindows&) = delete;
  std::int64_t places[IndexRows::block], numbers[IndexRows::block];
};

// Combines windows with their rows of updates, which are row_stride elements apart.
using Combine = void (*)(void* array, const Windows& windows, const Runs& runs, const void* updates,
                         std::int64_t row_stride);
template <class Op, class T>
void combine_windows(void* array, const Windows& windows, const Runs& runs, const void* updates,
                     std::int64_t row_stride) {
  T* const dst = static_cast<T*>(array);
  const T* const first = static_cast<const T*>(updates);
  const std::int64_t* const offsets = windows.offsets;
  auto for_windows = [&](const auto& row_of) {
    if (runs.size == 1) {
      for (std::int64_t i = 0; i < windows.count; ++i)
        combine<Op>(dst[offsets[i]], first[row_of(i) * row_stride]);
      return;
    }
    for (std::int64_t i = 0; i < windows.count; ++i) {
      const T* const src = first + row_of(i) * row_stride;
      for (const Runs::Start& start : runs.starts)
        combine_run<Op>(dst + offsets[i] + start.array, runs.array_stride, src + start.values,
                        runs.values_stride, runs.length);
    }
  };
  if (const std::int64_t* const rows = windows.rows)
    for_windows([rows](std::int64_t i) { return rows[i]; });
  else
    for_windows([](std::int64_t i) { return i; });
}

// Combines single elements with updates [begin, end), in one pass over the indices.
using CombineLine = void (*)(void* array, const IndexRows::Line& line, Outside outside,
                             std::int64_t begin, std::int64_t end, const void* updates,
                             std::int64_t update_stride);
template <class Op, class T>
void combine_line(void* array, const IndexRows::Line& line, Outside outside, std::int64_t begin,
                  std::int64_t end, const void* updates, std::int64_t update_stride) {
  T* const dst = static_cast<T*>(array);
  const T* const src = static_cast<const T*>(updates);
  const auto run = [&](const auto stride) __attribute__((always_inline)) {
    for_starts(
        line, outside, begin, end,
        [=](std::int64_t i, std::int64_t offset) {
          combine<Op>(dst[offset], src[i * std::int64_t(stride)]);
        },
        [](std::int64_t) {});
  };
  if (update_stride == 1)
    run(std::integral_constant<std::int64_t, 1>());
  else
    run(update_stride);
}

// Fills the array of a part, or combines with it what the parts before have made.
using FillPart = void (*)(void* part, std::int64_t size);
template <class Op, class T>
void fill_part(void* part, std::int64_t size) {
  std::fill_n(static_cast<T*>(part), size, T(Op::template identity<detail::Compute<T>>()));
}
using AddPart = void (*)(void* array, const void* part, std::int64_t size);
template <class Op, class T>
void add_part(void* array, const void* part, std::int64_t size) {
  combine_run<Op>(static_cast<T*>(array), 1, static_cast<const T*>(part), 1, size);
}

struct Combines {
  Combine windows;
  CombineLine line;
  FillPart fill_part;  // none of set and mul
  AddPart add_part;
};
template <class Op, class T>
constexpr Combines combines_of{&combine_windows<Op, T>, &combine_line<Op, T>, &fill_part<Op, T>,
                               &add_part<Op, T>};
template <class Op, class T>
constexpr Combines whole_of{&combine_windows<Op, T>, &combine_line<Op, T>, nullptr, nullptr};

Combines combine_for(Kind kind, DType dtype) {
  if (kind == Kind::set) {
    switch (size_of(dtype)) {
      case 1:
        return whole_of<Set, std::uint8_t>;
      case 2:
        return whole_of<Set, std::uint16_t>;
      case 4:
        return whole_of<Set, std::uint32_t>;
      case 8:
        return whole_of<Set, std::uint64_t>;
      default:
        return whole_of<Set, Bytes16>;
    }
  }
  return visit_dtype(dtype, [&](auto element) -> Combines {
    using T = decltype(element);
    if (kind == Kind::add) return combines_of<Add, T>;
    if (kind == Kind::mul) return whole_of<Multiply, T>;
    if constexpr (complexes.has(dtype_of<T>()))
      throw InternalError("complex numbers have no order");
    else
      return kind == Kind::min ? combines_of<Minimum, T> : combines_of<Maximum, T>;
  });
}

// Elements between the updates of one row and the next, where each row has one.
std::optional<std::int64_t> stride_of_line(const View& updates) {
  if (updates.is_dense()) return 1;
  if (updates.rank() == 1) return updates.strides[0];
  for (std::size_t axis = 0; axis < updates.shape.size(); ++axis)
    if (updates.shape[axis] != 1 && updates.strides[axis] != 0) return std::nullopt;
  return 0;
}

// One scatter, divided among threads: see NOTE: [scatter order].
struct Scatter {
  View out, updates;  // updates dense, but for single ones
  std::int64_t update_stride;
  const IndexRows& rows;
  lax::IndexDimensions dimensions;
  Sizes64 window, out_strides, update_strides;
  Outside outside;
  Combines combine;

  // Windows [begin, end) of the rows that `part` keeps.
  void run(const IndexRows& part, std::int64_t begin, std::int64_t end) const {
    const std::int64_t width = size_of(out.dtype), row_size = updates.size() / rows.count(),
                       row_stride = row_size == 1 ? update_stride : row_size;
    const Runs runs = runs_of(window, out_strides, update_strides);
    const bool may_leave_out = part.may_leave_out(outside);
    if (const auto line = part.line(); line && row_size == 1)
      return combine.line(out.data, *line, outside, begin, end, updates.data, update_stride);
    part.for_blocks(
        begin, end, outside,
        [&](std::int64_t row, std::int64_t count, const std::int64_t* offsets) {
          const char* const first = updates.as<char>() + row * row_stride * width;
          if (may_leave_out)
            combine.windows(out.data, KeptWindows(offsets, count), runs, first, row_stride);
          else
            combine.windows(out.data, {offsets, nullptr, count}, runs, first, row_stride);
        });
  }
  // The part of every window with elements [begin, end) along one of its axes.
  Scatter narrowed(int axis, std::int64_t begin, std::int64_t end) const {
    Scatter part = *this;
    part.window[axis] = end - begin;
    part.out.data = out.as<char>() + begin * out_strides[axis] * size_of(out.dtype);
    part.updates.data = updates.as<char>() + begin * update_strides[axis] * size_of(out.dtype);
    return part;
  }
  // Rows in parts, of which the first is combined into the array itself.
  void run_in_parts(std::int64_t num_parts) const {
    const std::int64_t count = rows.count(), size = out.size(), bytes = size * size_of(out.dtype);
    const Storage memory = Storage::allocate(std::size_t((num_parts - 1) * bytes));
    const auto array_of = [&](std::int64_t part) {
      return part == 0 ? out.as<char>() : static_cast<char*>(memory.data()) + (part - 1) * bytes;
    };
    parallel_for(num_parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = begin; part < end; ++part) {
        Scatter mine = *this;
        mine.out.data = array_of(part);
        if (part > 0) combine.fill_part(mine.out.data, size);
        mine.run(rows, count * part / num_parts, count * (part + 1) / num_parts);
      }
    });
    const std::int64_t width = size_of(out.dtype);
    parallel_for(size, 32768, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = 1; part < num_parts; ++part)
        combine.add_part(out.as<char>() + begin * width, array_of(part) + begin * width,
                         end - begin);
    });
  }
  void run_all(bool disjoint) const {
    const std::int64_t count = rows.count(), size = updates.size() / count,
                       width = size_of(out.dtype);
    if (updates.size() < 32768 || num_threads() == 1) return run(rows, 0, count);
    if (disjoint && count > 1) {
      return parallel_for(count, std::max<std::int64_t>(1, 16384 / size),
                          [&](std::int64_t begin, std::int64_t end) { run(rows, begin, end); });
    }
    const std::int64_t per_batch = rows.rows_per_batch();
    if (rows.num_batches() >= 2 * num_threads())
      return parallel_for(rows.num_batches(), std::max<std::int64_t>(1, 16384 / (size * per_batch)),
                          [&](std::int64_t begin, std::int64_t end) {
                            run(rows, begin * per_batch, end * per_batch);
                          });
    // Along an axis that is not indexed, every window covers the same range. Runs stay a few cache
    // lines long.
    for (std::size_t axis = 0; axis < window.size(); ++axis) {
      if (contains(dimensions.axes, dimensions.batch_dims + int(axis))) continue;
      const std::int64_t grain = axis + 1 == window.size() ? 256 / width : 1;
      if (window[axis] < grain * num_threads()) continue;
      return parallel_for(window[axis], grain, [&](std::int64_t begin, std::int64_t end) {
        narrowed(int(axis), begin, end).run(rows, 0, count);
      });
    }
    // Otherwise every thread reads all indices and takes the windows that start in its part of an
    // axis. With few threads, finding them would take longer than one thread needs to combine
    // single elements.
    if (size == 1 && num_threads() < 4) return run(rows, 0, count);
    for (std::size_t m = 0; m < dimensions.axes.size(); ++m) {
      const int axis = dimensions.axes[m];
      if (window[axis - dimensions.batch_dims] != 1 || out.shape[axis] < num_threads()) continue;
      return parallel_for(out.shape[axis], (out.shape[axis] + num_threads() - 1) / num_threads(),
                          [&](std::int64_t begin, std::int64_t end) {
                            IndexRows part = rows;
                            part.keep_only(int(m), begin, end);
                            run(part, 0, count);
                          });
    }
    run(rows, 0, count);
  }
};

}  // namespace

void eval_scatter(std::span<const View> inputs, std::span<const View> outputs,
                  const Params& params) {
  const View& out = outputs[0];
  const lax::IndexDimensions dimensions = dimensions_of(params);
  const Sizes64 window = window_sizes(out.rank(), inputs[2].shape, dimensions);
  const IndexRows rows("scatter", out, inputs[1], params, window);
  const Mode mode = mode_of(params);
  if (mode == Mode::check) rows.check();
  if (inputs[0].data != out.data) copy_elements(inputs[0], out);  // otherwise in place
  if (inputs[2].size() == 0 || out.size() == 0) return;
  const std::optional<std::int64_t> stride =
      inputs[2].size() == rows.count() ? stride_of_line(inputs[2]) : std::nullopt;
  const bool is_read_in_place = stride || inputs[2].is_dense();
  const Buffer dense = is_read_in_place ? Buffer() : Buffer::copy_of(inputs[2]);
  const Outside outside = mode == Mode::check  ? Outside::trust
                          : mode == Mode::clip ? Outside::clamp
                                               : Outside::skip;
  const Sizes64 strides(out.strides.begin() + dimensions.batch_dims, out.strides.end());
  const Scatter scatter{out,
                        is_read_in_place ? inputs[2] : dense.view(),
                        stride.value_or(1),
                        rows,
                        dimensions,
                        window,
                        strides,
                        values_strides(window, dimensions),
                        outside,
                        combine_for(scatter_kind_of(params), out.dtype)};
  const Shape indices = Shape::of(inputs[1].shape);
  const std::int64_t num_parts =
      num_parts_of(params, Shape::of(out.shape), indices, Shape::of(inputs[2].shape));
  if (num_parts > 1)
    scatter.run_in_parts(num_parts);
  else
    scatter.run_all(is_disjoint(params, indices));
}

}  // namespace plait::indexing
