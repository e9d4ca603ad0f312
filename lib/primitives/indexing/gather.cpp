// gather: windows of an array at positions given by rows of indices.
//
//   operand [b..., o...]         b: the first batch_dims axes, shared with the indices
//   indices [b..., i..., k]      integers; entry m of a row is where a window starts along axes[m],
//                                an axis of the operand. Along other axes windows start at 0
//   result  [b..., i..., w...]   w: slice_sizes without the axes in collapse, where windows have
//                                size 1
//   result[b, i, w] = operand[b, start(indices[b, i]) + w]
//
// A window that does not lie inside the operand is, by mode: an IndexError (check); moved to the
// nearest that does (clip); filled with the value `fill` (fill), by default NaN, the smallest
// signed or largest unsigned integer, or true; excluded by the caller (promise: it reads some
// element, never other memory). No window lies inside an empty axis: clip and promise give the fill
// value there.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/pool.h>
#include <plait/rules/autocast.h>
#include <plait/rules/guard.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include "primitives/bytes16.h"
#include "primitives/cost.h"
#include "primitives/indexing/index_rows.h"
#include "primitives/last_params.h"
#include "primitives/spelling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace plait {
namespace {

using namespace indexing;
using Mode = lax::GatherScatterMode;

// --- Evaluation ----------------------------------------------------------------------------------

using Element = std::array<char, 16>;

Element fill_element(DType dtype, const Params& params) {
  const ParamValue* fill = params.find("fill");
  Element bytes{};
  visit_dtype(dtype, [&](auto element) {
    using T = decltype(element);
    T value;
    if constexpr (std::is_same_v<T, bool>)
      value = !fill || std::get<double>(*fill) != 0;
    else if constexpr (std::is_integral_v<T>)
      value =
          !fill
              ? (std::is_signed_v<T> ? std::numeric_limits<T>::min()
                                     : std::numeric_limits<T>::max())
              : T(cast(Literal{DType::float64, false, 0, std::get<double>(*fill), 0}, dtype, false)
                      .integer);
    else if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
      value = T(fill ? float(std::get<double>(*fill)) : NAN);
    else
      value = T(fill ? std::get<double>(*fill) : NAN);
    std::memcpy(bytes.data(), &value, sizeof value);
  });
  return bytes;
}

// Elements are moved as integers of their width, so NaN payloads survive.
template <class T>
void copy_windows(const T* array, const std::int64_t* offsets, std::int64_t count, const Runs& runs,
                  T fill, T* dst) {
  if (runs.size == 1) {
    for (std::int64_t i = 0; i < count; ++i)
      dst[i] = offsets[i] == no_window ? fill : array[offsets[i]];
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    if (offsets[i] == no_window) {
      dst = std::fill_n(dst, runs.size, fill);
      continue;
    }
    for (const Runs::Start& start : runs.starts) {
      const T* src = array + offsets[i] + start.array;
      if (runs.array_stride == 1)
        std::memcpy(dst, src, runs.length * sizeof(T));
      else
        for (std::int64_t j = 0; j < runs.length; ++j) dst[j] = src[j * runs.array_stride];
      dst += runs.length;
    }
  }
}

template <class T>
void gather_typed(const View& array, const IndexRows& rows, Outside outside, const Sizes64& window,
                  const Sizes64& strides, const Element& fill_bytes, const View& out) {
  T fill;
  std::memcpy(&fill, fill_bytes.data(), sizeof fill);
  const std::int64_t size = num_elements(window);
  if (rows.count() < 2 * num_threads() && size * std::int64_t(sizeof(T)) > (1 << 16)) {
    // Few large windows: each is copied by all threads.
    rows.for_blocks(0, rows.count(), outside,
                    [&](std::int64_t row, std::int64_t count, const std::int64_t* offsets) {
                      for (std::int64_t i = 0; i < count; ++i) {
                        const View dst{out.as<T>() + (row + i) * size, out.dtype, window,
                                       dense_strides(window)};
                        const bool inside = offsets[i] != no_window;
                        const View src{inside ? array.as<T>() + offsets[i] : &fill, out.dtype,
                                       window, inside ? strides : Sizes64(window.size(), 0)};
                        copy_elements(src, dst);
                      }
                    });
    return;
  }
  if (const auto line = rows.line(); line && size == 1)
    return parallel_for(rows.count(), 16384, [&](std::int64_t begin, std::int64_t end) {
      T* const to = out.as<T>();
      const T* const from = array.as<T>();
      for_starts(
          *line, outside, begin, end,
          [=](std::int64_t row, std::int64_t offset) { to[row] = from[offset]; },
          [=](std::int64_t row) { to[row] = fill; });
    });
  const Runs runs = runs_of(window, strides, dense_strides(window));
  parallel_for(rows.count(), std::max<std::int64_t>(1, 16384 / size),
               [&](std::int64_t begin, std::int64_t end) {
                 rows.for_blocks(
                     begin, end, outside,
                     [&](std::int64_t row, std::int64_t count, const std::int64_t* offsets) {
                       copy_windows(array.as<T>(), offsets, count, runs, fill,
                                    out.as<T>() + row * size);
                     });
               });
}

void eval_gather(std::span<const View> inputs, std::span<const View> outputs,
                 const Params& params) {
  const View &array = inputs[0], &out = outputs[0];
  const int batch_dims = int(params.integer("batch_dims"));
  const Sizes64 window = params.get<Shape>("slice_sizes").to_sizes();
  const Sizes64 strides(array.strides.begin() + batch_dims, array.strides.end());
  const IndexRows rows("gather", array, inputs[1], params, window);
  const Mode mode = mode_of(params);
  if (mode == Mode::check) rows.check();
  if (out.size() == 0) return;
  const Outside outside = mode == Mode::check  ? Outside::trust
                          : mode == Mode::fill ? Outside::skip
                                               : Outside::clamp;
  const Element fill = fill_element(out.dtype, params);
  switch (size_of(out.dtype)) {
    case 1:
      return gather_typed<std::uint8_t>(array, rows, outside, window, strides, fill, out);
    case 2:
      return gather_typed<std::uint16_t>(array, rows, outside, window, strides, fill, out);
    case 4:
      return gather_typed<std::uint32_t>(array, rows, outside, window, strides, fill, out);
    case 8:
      return gather_typed<std::uint64_t>(array, rows, outside, window, strides, fill, out);
    default:
      return gather_typed<Bytes16>(array, rows, outside, window, strides, fill, out);
  }
}

// --- Rules ---------------------------------------------------------------------------------------

// The fill value does not depend on the operand: its tangent is zero.
Params linear_params(const Params& params) {
  return mode_of(params) == Mode::check ? params : params.with("fill", 0.0);
}

std::vector<Batched> batch_gather(Dim size, std::span<const Batched> inputs, const Params& params) {
  const Batched &x = inputs[0], &indices = inputs[1];
  lax::IndexDimensions dimensions = dimensions_of(params);
  Shape window = params.get<Shape>("slice_sizes");
  const int first = dimensions.batch_dims;
  auto bind_gather = [&](const Array& operand, const Array& rows) -> Array {
    const Params changed = params.with("axes", to_shape(dimensions.axes))
                               .with("collapse", to_shape(dimensions.collapse));
    return bind(gather_p, {operand, rows},
                changed.with("batch_dims", Dim(dimensions.batch_dims)).with("slice_sizes", window));
  };
  auto shift_axes = [&](int from) {
    for (std::vector<int>* list : {&dimensions.axes, &dimensions.collapse})
      for (int& axis : *list) axis += axis >= from;
  };
  if (!indices.dim) {
    // Every window takes all examples: the batch axis is one more axis of it, in front or in place.
    const int dim = std::max(*x.dim, first);
    shift_axes(dim);
    window.insert(dim - first, size);
    int out = indices.array.ndim() - 1;
    for (int axis = first; axis < dim; ++axis) out += !contains(dimensions.collapse, axis);
    return {{bind_gather(move_batch(x, size, dim), indices.array), out}};
  }
  if (!x.dim) {
    // The batch gives more rows of indices into the same operand.
    const bool among_rows = *indices.dim >= first && *indices.dim + 1 < indices.array.ndim();
    const int dim = among_rows ? *indices.dim : first;
    return {{bind_gather(x.array, move_batch(indices, size, dim)), dim}};
  }
  shift_axes(0);
  ++dimensions.batch_dims;
  return {{bind_gather(move_batch(x, size, 0), move_batch(indices, size, 0)), 0}};
}

Arrays mask_gather(std::span<const Masked> inputs, std::span<const Aval>, const Params& params,
                   const SizeValues& sizes) {
  const Masked &x = inputs[0], &indices = inputs[1];
  const lax::IndexDimensions dimensions = dimensions_of(params);
  const Shape &window = params.get<Shape>("slice_sizes"), bounds = bounds_of(window, sizes);
  Mode mode = mode_of(params);
  Array operand = x.padded;
  for (int i = 0; i < window.rank(); ++i) {
    const int axis = dimensions.batch_dims + i;
    if (window[i].is_constant() || window[i] == x.aval.shape[axis]) continue;
    // The padding of a window may reach beyond the padded operand.
    operand = resized(operand, axis, operand.shape(axis) + bounds[i]);
  }
  Array rows = indices.padded;
  if (mode == Mode::check) {
    rows = checked_rows("gather", signed_indices(rows), indices.aval.shape, x, dimensions, window,
                        sizes);
    mode = Mode::fill;
  }
  if (has_ragged_axes(x.aval.shape, dimensions, window)) {
    rows = rows_in_real_sizes(signed_indices(rows), x, dimensions, window, mode, sizes);
    if (mode == Mode::clip) mode = Mode::fill;
  }
  // Windows of padding indices are never read, but must not be out of bounds.
  if (mode == Mode::promise)
    if (std::optional<Array> real = validity(indices.aval.shape, sizes))
      rows = lax::select(*real, rows, literal_like(rows, 0));
  const Params padded = params.with("slice_sizes", bounds);
  return bind(gather_p, {operand, rows},
              mode == mode_of(params) ? padded : padded.with("mode", std::string("fill")));
}

std::vector<Sample> gather_samples() {
  const Sample::Input matrix{{{4, 5}, DType::float64}}, cube{{{2, 4, 3}, DType::float64}};
  auto indices = [](Shape shape, std::int64_t limit) {
    return Sample::Input{{shape, DType::int32}, Sample::Input::Values::indices, limit};
  };
  auto params = [](lax::IndexDimensions dimensions, Shape window, Mode mode,
                   std::optional<double> fill = {}) {
    std::vector<Params::Entry> others{{"slice_sizes", window}};
    if (fill) others.emplace_back("fill", *fill);
    return params_of(dimensions, mode, others);
  };
  return {
      {{matrix, indices({3, 1}, 4)}, params({{0}, {0}, 0}, {1, 5}, Mode::check)},        // rows
      {{matrix, indices({2, 2, 1}, 9)}, params({{1}, {1}, 0}, {4, 1}, Mode::clip)},      // columns
      {{matrix, indices({3, 2}, 4)}, params({{0, 1}, {0, 1}, 0}, {1, 1}, Mode::fill)},   // elements
      {{matrix, indices({3, 2}, 5)}, params({{1, 0}, {}, 0}, {2, 3}, Mode::fill, 0.0)},  // windows
      {{cube, indices({2, 5, 1}, 4)},
       params({{1}, {1}, 1}, {1, 3}, Mode::promise)},  // take_along_axis
      {{cube, indices({2, 2}, 3)},
       params({{2, 1}, {1}, 1}, {1, 2}, Mode::clip)},  // one window for each
      {{matrix, indices({0, 1}, 4)}, params({{0}, {0}, 0}, {1, 5}, Mode::check)},
      {{matrix, indices({2, 0}, 1)}, params({{}, {}, 0}, {2, 5}, Mode::clip)}};
}

loops::Tensors emit_gather(loops::Writer& w, const Equation& equation,
                           std::span<const loops::Tensor> inputs) {
  const Shape& window = equation.params.get<Shape>("slice_sizes");
  const lax::IndexDimensions dimensions = dimensions_of(equation.params);
  const Shape& rows = inputs[1].aval.shape;
  Shape shape(rows.begin(), rows.end() - 1);
  std::vector<int> kept;  // axes of the array
  for (int i = 0; i < window.rank(); ++i) {
    if (contains(dimensions.collapse, dimensions.batch_dims + i)) continue;
    shape.push_back(window[i]);
    kept.push_back(dimensions.batch_dims + i);
  }
  const Mode mode = mode_of(equation.params);
  // A few of the elements that nobody else keeps are computed where they are wanted.
  constexpr std::int64_t few = 8;  // one of so many
  const bool are_few =
      inputs[0].formula && inputs[0].formula->cuts.empty() &&
      shape.num_elements().constant() * few <= inputs[0].aval.shape.num_elements().constant();
  const loops::Tensor array = are_few ? inputs[0] : w.in_memory(inputs[0]);
  if (!are_few && rows.num_elements() == Dim(std::int64_t(dimensions.axes.size())) &&
      dimensions.batch_dims == 0 && mode != Mode::fill)
    return {only_window(w, equation, array, inputs[1], window, shape)};
  loops::Tensor indices = inputs[1];
  constexpr double most_work = 16;  // that is done for the test and for the element
  if (!indices.formula || indices.formula->work > most_work) indices = w.in_memory(indices);
  if (mode == Mode::check)  // before any window is read, as an eager call does
    check_windows(w, equation, array, indices, window);
  loops::Formula formula;
  formula.work = 4;
  formula.reads = w.reads_of(indices);
  for (loops::Formula::Read& read : formula.reads) read.is_anywhere = true;
  if (are_few) formula.work += array.formula->work;
  for (loops::Formula::Read read : w.reads_of(array)) {
    read.is_anywhere = true;
    formula.reads.push_back(std::move(read));
  }
  const auto num_rows = std::size_t(rows.rank() - 1);
  const loops::Value fill =
      mode == Mode::fill ? w.literal(fill_literal(array.aval.dtype, equation.params)) : -1;
  formula.element = [=, &w, source = equation.source](std::span<const loops::Index> at) {
    loops::Values tests;
    const auto test = [&](const char* direction, loops::Value start, std::int64_t bound) {
      tests.push_back(w.compute(cmp_p, {{"direction", std::string(direction)}},
                                {start, w.integer(bound)}, source));
    };
    loops::Indices inside(std::size_t(array.aval.rank()));
    for (int i = 0; i < dimensions.batch_dims; ++i) inside[std::size_t(i)] = at[std::size_t(i)];
    for (std::size_t i = 0; i < kept.size(); ++i) inside[std::size_t(kept[i])] = at[num_rows + i];
    for (std::size_t i = 0; i < dimensions.axes.size(); ++i) {
      const int axis = dimensions.axes[i];
      loops::Value start = start_of_window(w, indices, at.first(num_rows), i);
      const std::int64_t last = last_start(array, dimensions, window, i);
      if (mode == Mode::fill) {
        test("ge", start, 0);
        test("le", start, last);
      }
      if (mode == Mode::check)
        start = w.checked(start, 0, last);
      else
        start = w.clamped(start, 0, last);
      inside[std::size_t(axis)].terms.push_back({start, 1});
    }
    loops::Value element = w.element(array, inside);
    for (const loops::Value is_inside : tests)
      element = w.compute(select_p, {}, {is_inside, element, fill}, source);
    return element;
  };
  return {w.computed({shape, array.aval.dtype}, std::move(formula))};
}

}  // namespace

Literal indexing::fill_literal(DType dtype, const Params& params) {
  Literal literal{dtype, false, 0, 0, 0};
  if (const ParamValue* fill = params.find("fill")) {
    const double value = std::get<double>(*fill);
    literal = cast(Literal{DType::float64, false, 0, value, 0}, dtype, false);
    if (is_bool(dtype)) literal.integer = value != 0;
    return literal;
  }
  if (is_inexact(dtype)) literal.real = NAN;
  visit_dtype(dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_integral_v<T>)
      literal.integer = std::int64_t(std::is_same_v<T, bool> || std::is_unsigned_v<T>
                                         ? std::numeric_limits<T>::max()
                                         : std::numeric_limits<T>::min());
  });
  return literal;
}

constinit const Primitive gather_p{"gather"};
static const auto gather_def =
    define(gather_p, "Windows of the operand that start where rows of the second operand say.")
        .operands(2)
        .takes_stored()
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const Shape& window = params.get<Shape>("slice_sizes");
          const lax::IndexDimensions dimensions = dimensions_of(params);
          Aval aval{leading_shape("gather", inputs[0], inputs[1], params, window), inputs[0].dtype,
                    inputs[0].weak};
          for (int i = 0; i < window.rank(); ++i)
            if (!contains(dimensions.collapse, dimensions.batch_dims + i))
              aval.shape.push_back(window[i]);
          return std::vector<Aval>{aval};
        })
        .rule<Emit>(emit_gather)
        .rule<Eval>(eval_gather)
        .rule<Cost>(cost::moves_parts())
        .rule<Autocast>(Autocast::follows)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::movement)
        .refuse<Speculate>("it may raise")
        .refuse<Motion>("it may raise")
        .rule<Jvp>([](std::span<const Array> primals, std::span<const Tangent> tangents,
                      std::span<const Array>, const Params& params) -> Tangents {
          return {Array(bind(gather_p, {tangents[0].array(), primals[1]}, linear_params(params)))};
        })
        .rule<Accumulate>([](const Array& sum, const Array& cotangent,
                             std::span<const TransposeInput> inputs, const Params& params) {
          return lax::scatter(sum, inputs[1].known(), cotangent, dimensions_of(params),
                              lax::ScatterKind::add, {mode_of(params)});
        })
        .rule<Transpose>([](std::span<const Tangent> cotangents,
                            std::span<const TransposeInput> inputs,
                            const Params& params) -> Tangents {
          const Array zeros = lax::zeros_like(inputs[0].aval());
          return {lax::scatter(zeros, inputs[1].known(), cotangents[0].array(),
                               dimensions_of(params), lax::ScatterKind::add, {mode_of(params)}),
                  Tangent(inputs[1].aval())};
        })
        .rule<Batch>(batch_gather)
        .rule<Mask>(mask_gather)
        .rule<Guard>({checks,
                      [](const Array& live, std::span<const Array> inputs, const Params& params) {
                        const Array rows = guarded_rows("gather", live, signed_indices(inputs[1]),
                                                        inputs[0].shape(), dimensions_of(params),
                                                        params.get<Shape>("slice_sizes"));
                        return Arrays(bind(gather_p, {inputs[0], rows},
                                           params.with("mode", std::string("fill"))));
                      },
                      true})
        .rule<Samples>(gather_samples);

Array lax::gather(Operand operand, Operand indices, const IndexDimensions& dimensions,
                  const Shape& slice_sizes, GatherScatterMode mode,
                  std::optional<double> fill_value) {
  const Params params = last_params(
      [&] {
        std::vector<Params::Entry> others{{"slice_sizes", slice_sizes}};
        if (fill_value && mode != GatherScatterMode::check)
          others.emplace_back("fill", *fill_value);
        return params_of(dimensions, mode, std::move(others));
      },
      dimensions.axes, dimensions.collapse, dimensions.batch_dims, slice_sizes, mode, fill_value);
  return bind(gather_p, {operand, indices}, params);
}

Array lax::gather(Operand operand, Operand start_indices, const GatherDimensionNumbers& numbers,
                  const Shape& slice_sizes, GatherScatterMode mode,
                  std::optional<double> fill_value) {
  const int rank = int(numbers.offset_dims.size()) + std::max(0, start_indices.ndim() - 1);
  const Canonical form =
      canonical("gather", operand.ndim(), start_indices.ndim(), rank, numbers.offset_dims,
                numbers.collapsed_slice_dims, numbers.start_index_map,
                numbers.operand_batching_dims, numbers.start_indices_batching_dims);
  require_entries("gather", operand.aval(), slice_sizes.size(), "slice sizes");
  Shape window;
  for (int i = form.dimensions.batch_dims; i < operand.ndim(); ++i)
    window.push_back(slice_sizes[form.operand[i]]);
  const Array array = transposed(operand, form.operand),
              rows = transposed(start_indices, form.indices);
  return transposed(lax::gather(array, rows, form.dimensions, window, mode, fill_value),
                    inverse_of(form.result));
}

}  // namespace plait
