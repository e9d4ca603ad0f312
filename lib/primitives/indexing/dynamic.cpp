// Windows at dynamic positions: dynamic_slice and dynamic_update_slice. Starts are clamped, so that
// the window lies inside the array.
//
// A batch of starts is a gather, or a scatter, with one row of indices for each example.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/autocast.h>
#include <plait/rules/emit.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include "primitives/cost.h"
#include "primitives/indexing/indexing.h"
#include "primitives/spelling.h"

#include <algorithm>

namespace plait {
namespace {

using namespace indexing;

const Sample::Input& matrix = *new const Sample::Input{{{4, 5}, DType::float64}};
const Sample::Input& scalar = *new const Sample::Input{{{}, DType::float64}};

Sample::Input start_below(std::int64_t limit) {
  return {{{}, DType::int32}, Sample::Input::Values::indices, limit};
}

// --- Evaluation ----------------------------------------------------------------------------------

std::int64_t read_start(const View& start) {
  return visit_dtype(start.dtype, [&](auto element) -> std::int64_t {
    using T = decltype(element);
    if constexpr (std::is_same_v<T, std::uint64_t>)
      return std::int64_t(std::min<T>(*start.as<T>(), std::numeric_limits<std::int64_t>::max()));
    else if constexpr (std::is_integral_v<T>)
      return *start.as<T>();
    else
      throw InternalError("a start is no integer");
  });
}

View window_of(View view, std::span<const View> starts, const Sizes64& sizes) {
  for (int i = 0; i < view.rank(); ++i) {
    const std::int64_t last = view.shape[i] - sizes[i];
    view = part_of(view, i, std::clamp<std::int64_t>(read_start(starts[i]), 0, last), sizes[i]);
  }
  return view;
}

loops::Values starts_of(loops::Writer& w, const Aval& whole, std::span<const loops::Tensor> starts,
                        const Shape& sizes) {
  loops::Values inside;
  for (std::size_t i = 0; i < starts.size(); ++i)
    inside.push_back(w.clamped(w.index(w.elements_of(starts[i])[0]), 0,
                               whole.shape[int(i)].constant() - sizes[int(i)].constant()));
  return inside;
}
// Where each start is one number.
std::optional<Sizes64> known_starts(const loops::Writer& w, const loops::Values& starts) {
  Sizes64 known;
  for (loops::Value start : starts) {
    const loops::Range range = w.range({0, {{start, 1}}});
    if (range.low != range.high) return {};
    known.push_back(range.low);
  }
  return known;
}

loops::Tensors emit_slice(loops::Writer& w, const Equation& equation,
                          std::span<const loops::Tensor> inputs) {
  const Shape& sizes = equation.params.get<Shape>("slice_sizes");
  const loops::Values starts = starts_of(w, inputs[0].aval, inputs.subspan(1), sizes);
  if (std::optional<Sizes64> known = known_starts(w, starts); known && inputs[0].formula) {
    for (std::int64_t& start : *known) start = -start;
    return {w.composed({sizes, inputs[0].aval.dtype}, {{inputs[0], *known}}, {}, equation.source)};
  }
  return {loops::window(w.in_memory(inputs[0]), starts, sizes)};
}

// Most of an array is not written over where it lies, but made anew as what follows needs it.
loops::Tensors emit_update(loops::Writer& w, const Equation& equation,
                           std::span<const loops::Tensor> inputs) {
  const Shape &sizes = inputs[1].aval.shape, &shape = inputs[0].aval.shape;
  const loops::Values starts = starts_of(w, inputs[0].aval, inputs.subspan(2), sizes);
  if (const std::optional<Sizes64> known = known_starts(w, starts);
      known && 2 * sizes.num_elements().constant() >= shape.num_elements().constant())
    return {w.composed(inputs[0].aval, {{inputs[1], *known}}, inputs[0], equation.source)};
  const loops::Tensor whole = w.to_overwrite(0);
  w.copy(inputs[1], loops::window(whole, starts, sizes));
  return {whole};
}

void require_starts(std::string_view name, const Aval& x, std::span<const Aval> starts) {
  require_entries(name, x, starts.size(), "starts");
  for (const Aval& start : starts) {
    require_integer(name, start);
    if (start.rank() != 0)
      throw ShapeError(std::string(name) + ": a start has shape " + text_of(start.shape),
                       "give one scalar for each axis");
  }
}

// --- Batching ------------------------------------------------------------------------------------

bool any_batched(std::span<const Batched> values) {
  return std::any_of(values.begin(), values.end(),
                     [](const Batched& value) { return value.dim.has_value(); });
}

// The starts along some axes as rows of indices, one for each example.
Array rows_of(Dim size, std::span<const Batched> starts, std::span<const int> axes) {
  std::vector<Batched> columns;
  bool wide = false;
  for (int axis : axes) {
    columns.push_back({signed_indices(starts[axis].array), starts[axis].dim});
    // A number is an int64, and mostly small.
    const std::optional<Literal> literal = columns.back().array.as_literal();
    const bool small = literal && literal->integer == std::int32_t(literal->integer);
    wide |= columns.back().array.dtype() == DType::int64 && !small;
  }
  Arrays parts;
  for (const Batched& column : columns) {
    const Array start = lax::convert_element_type(column.array, wide ? DType::int64 : DType::int32);
    parts.push_back(lax::reshape(move_batch({start, column.dim}, size, 0), {size, 1}));
  }
  return lax::concatenate(parts, 1);
}

// Axes along which the window does not start at 0 in every example. The window's size is ignored:
// with named sizes it would give a different program than with numbers.
std::vector<int> moving_axes(std::span<const Batched> starts) {
  std::vector<int> axes;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::optional<Literal> literal = starts[i].array.as_literal();
    if (!literal || literal->integer != 0) axes.push_back(int(i));
  }
  return axes;
}

Arrays with_starts(Arrays arrays, std::span<const Batched> starts, int dim) {
  for (const Batched& start : starts) arrays.push_back(start.array);
  arrays.insert(arrays.end() - int(starts.size()) + dim, Array::literal(0, DType::int32));
  return arrays;
}

std::vector<Batched> batch_dynamic_slice(Dim size, std::span<const Batched> inputs,
                                         const Params& params) {
  const Batched& x = inputs[0];
  const std::span<const Batched> starts = inputs.subspan(1);
  const Shape& window = params.get<Shape>("slice_sizes");
  if (!any_batched(starts)) {
    const int dim = *x.dim;
    return {{Array(bind(dynamic_slice_p, with_starts({x.array}, starts, dim),
                        {{"slice_sizes", inserted(window, dim, size)}})),
             dim}};
  }
  lax::IndexDimensions dimensions{moving_axes(starts), {}, 0};
  const Array rows = rows_of(size, starts, dimensions.axes);
  Array operand = x.array;
  if (x.dim) {
    operand = move_batch(x, size, 0);
    dimensions.batch_dims = 1;
    for (int& axis : dimensions.axes) ++axis;
  }
  return {{lax::gather(operand, rows, dimensions, window, lax::GatherScatterMode::clip), 0}};
}

std::vector<Batched> batch_dynamic_update_slice(Dim size, std::span<const Batched> inputs,
                                                const Params&) {
  const Batched &x = inputs[0], &update = inputs[1];
  const std::span<const Batched> starts = inputs.subspan(2);
  if (!any_batched(starts)) {
    const int dim = x.dim ? *x.dim : *update.dim;
    const Arrays arrays{move_batch(x, size, dim), move_batch(update, size, dim)};
    return {{Array(bind(dynamic_update_slice_p, with_starts(arrays, starts, dim))), dim}};
  }
  lax::IndexDimensions dimensions{moving_axes(starts), {}, 1};
  const Array rows = rows_of(size, starts, dimensions.axes);
  for (int& axis : dimensions.axes) ++axis;
  return {{lax::scatter(move_batch(x, size, 0), rows, move_batch(update, size, 0), dimensions,
                        lax::ScatterKind::set, {lax::GatherScatterMode::clip, true, true}),
           0}};
}

// --- Masking -------------------------------------------------------------------------------------

// The starts of a window of real sizes in an array of real sizes. Starts that named sizes bound are
// clamped here, because the padded array would clamp them too late. Along the axes in `beyond` the
// padded window may extend beyond the padded array, which is enlarged.
struct MaskedWindow {
  Array x;
  Arrays starts;
  std::vector<int> beyond;
};

MaskedWindow masked_window(const Masked& x, std::span<const Masked> starts, const Shape& window,
                           const SizeValues& sizes) {
  MaskedWindow result{x.padded, {}, {}};
  const Shape bounds = bounds_of(window, sizes);
  for (int i = 0; i < window.rank(); ++i) {
    const Dim size = x.aval.shape[i], last = size - window[i];
    Array start = signed_indices(starts[i].padded);
    if (last == Dim(0))
      start = literal_like(start, 0);
    else if (!size.is_constant() || !window[i].is_constant())
      start = clamp_to(start, literal_like(start, 0),
                       lax::convert_element_type(sizes.value(last), start.dtype()));
    result.starts.push_back(start);
    if (last == Dim(0) || window[i].is_constant()) continue;
    result.beyond.push_back(i);
    result.x = resized(result.x, i, result.x.shape(i) + bounds[i]);
  }
  return result;
}

Arrays mask_dynamic_slice(std::span<const Masked> inputs, std::span<const Aval>,
                          const Params& params, const SizeValues& sizes) {
  const Shape& window = params.get<Shape>("slice_sizes");
  const MaskedWindow masked = masked_window(inputs[0], inputs.subspan(1), window, sizes);
  Arrays operands{masked.x};
  operands.insert(operands.end(), masked.starts.begin(), masked.starts.end());
  return bind(dynamic_slice_p, operands, {{"slice_sizes", bounds_of(window, sizes)}});
}

Arrays mask_dynamic_update_slice(std::span<const Masked> inputs, std::span<const Aval>,
                                 const Params&, const SizeValues& sizes) {
  const Masked &x = inputs[0], &update = inputs[1];
  const MaskedWindow masked = masked_window(x, inputs.subspan(2), update.aval.shape, sizes);
  Arrays operands{masked.x, update.padded};
  operands.insert(operands.end(), masked.starts.begin(), masked.starts.end());
  if (!masked.beyond.empty()) {
    // The update's padding would overwrite real elements: there, the existing values are written
    // again.
    Arrays reading = operands;
    reading.erase(reading.begin() + 1);
    const Array standing = bind(dynamic_slice_p, reading, {{"slice_sizes", update.padded.shape()}});
    Shape ragged = update.padded.shape();
    for (int axis : masked.beyond) ragged[axis] = update.aval.shape[axis];
    operands[1] = lax::select(*validity(ragged, sizes), update.padded, standing);
  }
  Array out = bind(dynamic_update_slice_p, operands);
  for (int axis : masked.beyond) out = resized(out, axis, x.padded.shape(axis));
  return {out};
}

}  // namespace

constinit const Primitive dynamic_slice_p{"dynamic_slice"};
static const auto dynamic_slice_def =
    define(dynamic_slice_p,
           "The window of the first operand that starts where the others, one scalar for each "
           "axis, say; starts are "
           "clamped, so that the window lies inside.")
        .operands_at_least(1)
        .takes_stored()
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          Aval aval = inputs[0];
          const Shape& window = params.get<Shape>("slice_sizes");
          require_starts("dynamic_slice", aval, inputs.subspan(1));
          require_entries("dynamic_slice", aval, window.size(), "slice sizes");
          for (int i = 0; i < aval.rank(); ++i) {
            auto outside = [&] {
              return ShapeError(axis_text("dynamic_slice", i, inputs[0]) +
                                    "the window has the size " + window[i].to_string(),
                                "give a size from 0 to " + inputs[0].shape[i].to_string());
            };
            require_order(0, window[i], outside);
            require_order(window[i], aval.shape[i], outside);
          }
          aval.shape = window;
          return std::vector<Aval>{aval};
        })
        .rule<Identity>([](std::span<const Aval> inputs, const Params& params) {
          const auto starts = inputs.subspan(1);
          return params.get<Shape>("slice_sizes") == inputs[0].shape &&
                 int(starts.size()) == inputs[0].rank() &&
                 std::all_of(starts.begin(), starts.end(), [](const Aval& start) {
                   return is_integer(start.dtype) && start.rank() == 0;
                 });
        })
        .rule<Emit>(emit_slice)
        .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs, const Params&) {
          copy_elements(window_of(inputs[0], inputs.subspan(1), outputs[0].shape), outputs[0]);
        })
        .rule<Cost>(cost::moves_parts())
        .rule<Autocast>(Autocast::follows)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::movement)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("it reads by computed indices")
        .rule<Jvp>(linear_through(dynamic_slice_p))
        .rule<Accumulate>([](const Array& sum, const Array& cotangent,
                             std::span<const TransposeInput> inputs, const Params& params) {
          Arrays read{sum};
          for (const TransposeInput& start : inputs.subspan(1)) read.push_back(start.known());
          Arrays written{sum, lax::add(Array(bind(dynamic_slice_p, read, params)), cotangent)};
          written.insert(written.end(), read.begin() + 1, read.end());
          return Array(bind(dynamic_update_slice_p, written));
        })
        .rule<Transpose>([](std::span<const Tangent> cotangents,
                            std::span<const TransposeInput> inputs, const Params&) {
          Arrays operands{lax::zeros_like(inputs[0].aval()), cotangents[0].array()};
          for (const TransposeInput& start : inputs.subspan(1)) operands.push_back(start.known());
          Tangents result{Array(bind(dynamic_update_slice_p, operands))};
          for (const TransposeInput& start : inputs.subspan(1))
            result.push_back(Tangent(start.aval()));
          return result;
        })
        .rule<Batch>(batch_dynamic_slice)
        .rule<Mask>(mask_dynamic_slice)
        .rule<Samples>([] {
          return std::vector<Sample>{
              {{matrix, start_below(7), start_below(4)}, {{"slice_sizes", Shape{2, 3}}}},
              {{matrix, start_below(4), start_below(5)}, {{"slice_sizes", Shape{1, 5}}}},
              {{matrix, start_below(4), start_below(5)}, {{"slice_sizes", Shape{0, 4}}}},
              {{scalar}, {{"slice_sizes", Shape{}}}}};
        });

constinit const Primitive dynamic_update_slice_p{"dynamic_update_slice"};
static const auto dynamic_update_slice_def =
    define(dynamic_update_slice_p,
           "The first operand with the second written over the window that starts where the "
           "others, one scalar "
           "for each axis, say; starts are clamped, so that the window lies inside.")
        .operands_at_least(2)
        .takes_stored()
        .overwrites(0)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          Aval aval = inputs[0];
          const Aval& update = inputs[1];
          require_same_dtype("dynamic_update_slice", aval, update, "the update has");
          require_starts("dynamic_update_slice", aval, inputs.subspan(2));
          if (update.rank() != aval.rank())
            throw ShapeError("dynamic_update_slice: the operand has shape " + text_of(aval.shape) +
                                 " and the update shape " + text_of(update.shape),
                             "give an update with as many axes, by reshape or expand_dims");
          for (int i = 0; i < aval.rank(); ++i)
            require_order(update.shape[i], aval.shape[i], [&] {
              return ShapeError(axis_text("dynamic_update_slice", i, inputs[0]) +
                                    "an update of shape " + text_of(update.shape) + " is too large",
                                "give an update that is at most as large along every axis");
            });
          aval.weak &= update.weak;
          return std::vector<Aval>{aval};
        })
        .rule<Emit>(emit_update)
        .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs, const Params&) {
          if (inputs[0].data != outputs[0].data)
            copy_elements(inputs[0], outputs[0]);  // otherwise in place
          copy_elements(inputs[1], window_of(outputs[0], inputs.subspan(2), inputs[1].shape));
        })
        .rule<Cost>(cost::moves())
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::movement)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("it writes by computed indices")
        .rule<Jvp>([](std::span<const Array> primals, std::span<const Tangent> tangents,
                      std::span<const Array>, const Params&) -> Tangents {
          Arrays operands(primals.begin(), primals.end());
          operands[0] = tangents[0].instantiate();
          operands[1] = tangents[1].instantiate();
          return {Array(bind(dynamic_update_slice_p, operands))};
        })
        .rule<Transpose>([](std::span<const Tangent> cotangents,
                            std::span<const TransposeInput> inputs, const Params&) {
          const Array& ct = cotangents[0].array();
          Tangents result;
          for (const TransposeInput& input : inputs) result.push_back(Tangent(input.aval()));
          Arrays operands{ct};
          for (const TransposeInput& start : inputs.subspan(2)) operands.push_back(start.known());
          if (inputs[1].is_linear())
            result[1] =
                Array(bind(dynamic_slice_p, operands, {{"slice_sizes", inputs[1].aval().shape}}));
          operands.insert(operands.begin() + 1,
                          lax::zeros_like({inputs[1].aval().shape, ct.dtype(), ct.aval().weak}));
          if (inputs[0].is_linear()) result[0] = Array(bind(dynamic_update_slice_p, operands));
          return result;
        })
        .rule<Batch>(batch_dynamic_update_slice)
        .rule<Mask>(mask_dynamic_update_slice)
        .rule<Samples>([] {
          const Sample::Input update{{{2, 3}, DType::float64}}, empty{{{0, 5}, DType::float64}};
          return std::vector<Sample>{{{matrix, update, start_below(7), start_below(4)}, {}},
                                     {{matrix, matrix, start_below(4), start_below(5)}, {}},
                                     {{matrix, empty, start_below(4), start_below(5)}, {}},
                                     {{scalar, scalar}, {}}};
        });

// --- Functions -----------------------------------------------------------------------------------

namespace {

// A start, counted from the end of its axis when it is negative.
Array wrapped_start(const Array& start, Dim size, lax::NegativeIndices negative) {
  if (negative == lax::NegativeIndices::clamp || !is_signed_integer(start.dtype()) ||
      start.ndim() != 0)
    return start;
  if (start.as_literal() || (start.is_concrete() && !Trace::current())) {
    const auto value = start.item<std::int64_t>();
    return value < 0 ? Array(size + value) : start;
  }
  const Array index = signed_indices(start);
  const Array length = in_dtype_of(Array(size), index),
              below = lax::lt(index, literal_like(index, 0));
  const Array from_end = lax::add(index, length);
  return lax::select(below, from_end, index);
}

void append_starts(Arrays& operands, const Arrays& starts, lax::NegativeIndices negative,
                   std::string_view name) {
  const Aval x = operands[0].aval();
  require_entries(name, x, starts.size(), "starts");
  for (std::size_t i = 0; i < starts.size(); ++i)
    operands.push_back(wrapped_start(starts[i], x.shape[i], negative));
}

Operands starts_in_dim(const Array& operand, const Array& start, int axis) {
  Arrays starts(operand.ndim(), Array::literal(0, DType::int32));
  starts[axis] = start;
  return starts;
}

}  // namespace

Array lax::dynamic_slice(Operand operand, Operands start_indices, const Shape& slice_sizes,
                         NegativeIndices negative) {
  Arrays operands{operand};
  append_starts(operands, start_indices, negative, "dynamic_slice");
  return bind(dynamic_slice_p, operands, {{"slice_sizes", slice_sizes}});
}
Array lax::dynamic_update_slice(Operand operand, Operand update, Operands start_indices,
                                NegativeIndices negative) {
  Arrays operands{operand, in_dtype_of(update, operand)};
  append_starts(operands, start_indices, negative, "dynamic_update_slice");
  return bind(dynamic_update_slice_p, operands);
}
Array lax::dynamic_slice_in_dim(Operand operand, Operand start_index, Dim slice_size, int axis,
                                NegativeIndices negative) {
  axis = normalize_axis(axis, operand.ndim(), "dynamic_slice_in_dim");
  Shape sizes = operand.shape();
  sizes[axis] = slice_size;
  return lax::dynamic_slice(operand, starts_in_dim(operand, start_index, axis), sizes, negative);
}
Array lax::dynamic_index_in_dim(Operand operand, Operand index, int axis, bool keepdims,
                                NegativeIndices negative) {
  axis = normalize_axis(axis, operand.ndim(), "dynamic_index_in_dim");
  const Array one = lax::dynamic_slice_in_dim(operand, index, 1, axis, negative);
  if (keepdims) return one;
  Shape shape = one.shape();
  shape.erase(axis);
  return lax::reshape(one, shape);
}
Array lax::dynamic_update_slice_in_dim(Operand operand, Operand update, Operand start_index,
                                       int axis, NegativeIndices negative) {
  axis = normalize_axis(axis, operand.ndim(), "dynamic_update_slice_in_dim");
  return lax::dynamic_update_slice(operand, update, starts_in_dim(operand, start_index, axis),
                                   negative);
}
Array lax::dynamic_update_index_in_dim(Operand operand, Operand update, Operand index, int axis,
                                       NegativeIndices negative) {
  axis = normalize_axis(axis, operand.ndim(), "dynamic_update_index_in_dim");
  const Array row = in_dtype_of(update, operand);
  if (row.ndim() == operand.ndim())
    return lax::dynamic_update_slice_in_dim(operand, row, index, axis, negative);
  Shape shape = row.shape();
  if (axis > shape.rank())
    throw ShapeError("dynamic_update_index_in_dim: the operand has shape " +
                         text_of(operand.shape()) + " and the update shape " + text_of(shape),
                     "give an update of the operand's shape without axis " + std::to_string(axis));
  return lax::dynamic_update_slice_in_dim(operand, lax::reshape(row, inserted(shape, axis, 1)),
                                          index, axis, negative);
}

}  // namespace plait
