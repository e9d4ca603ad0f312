// Primitives that slice and join arrays at static positions: slice, concatenate, split, rev.
// Windows at dynamic positions are in dynamic.cpp.
//
// Mask rules: an axis is sliced or joined where its real elements end, so a named size in a start
// or before a joint becomes a dynamic shift; everything else stays as it is.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/narrow.h>
#include <plait/rules/autocast.h>
#include <plait/rules/emit.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/put.h>
#include <plait/rules/separate.h>
#include <plait/rules/share.h>
#include <plait/rules/speculate.h>

#include "primitives/axis.h"
#include "primitives/cost.h"
#include "primitives/indexing/indexing.h"
#include "primitives/last_params.h"
#include "primitives/spelling.h"

#include <algorithm>

namespace plait {
namespace {

using namespace indexing;

const Sample::Input& matrix = *new const Sample::Input{{{4, 5}, DType::float64}};
const Sample::Input& scalar = *new const Sample::Input{{{}, DType::float64}};

}  // namespace

// --- slice ---------------------------------------------------------------------------------------

namespace {

// The elements of a slice at their places in an array of a shape, zeros elsewhere.
Array spread_slice(const Array& slice, const Shape& shape, const Params& params) {
  const Shape &start = params.get<Shape>("start"), &strides = params.get<Shape>("strides");
  std::vector<lax::Padding> padding;
  for (int i = 0; i < slice.ndim(); ++i) {
    const Dim interior = strides[i] - 1;
    padding.push_back(
        {start[i], shape[i] - start[i] - dilated(slice.shape(i), interior), interior});
  }
  return lax::pad(slice, Array::literal(0, slice.dtype()), padding);
}

// A weak array yields to what is written to it.
Array yielding_to(const Array& x, const Array& value) {
  return x.aval().weak && !value.aval().weak ? narrowed(x, value.dtype(), "x[...] = v") : x;
}

// x with value in its window that begins at start.
Array put_window(const Array& x, const Array& value, const Shape& start) {
  if (less_equal(value.shape().num_elements(), 0) == true) return x;
  Arrays starts;
  for (Dim first : start) starts.push_back(lax::convert_element_type(Array(first), DType::int32));
  return lax::dynamic_update_slice(yielding_to(x, value), value, starts,
                                   lax::NegativeIndices::clamp);
}

Array put_slice(const Array& x, const Array& value, std::size_t, const Params& params) {
  const Shape &start = params.get<Shape>("start"), &strides = params.get<Shape>("strides");
  if (strides == Shape(strides.size(), Dim(1))) return put_window(x, value, start);
  const Array is_shown = spread_slice(lax::full(value.shape(), 1, DType::bool_), x.shape(), params);
  return lax::select(is_shown, spread_slice(value, x.shape(), params), yielding_to(x, value));
}

}  // namespace

constinit const Primitive slice_p{"slice"};
static const auto slice_def =
    define(slice_p, "Elements start, start + stride, ... below limit along every axis.")
        .family(movement())
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const Shape &start = params.get<Shape>("start"), &limit = params.get<Shape>("limit"),
                      &strides = params.get<Shape>("strides");
          Aval aval = inputs[0];
          require_entries("slice", aval, start.size(), "starts");
          require_entries("slice", aval, limit.size(), "limits");
          require_entries("slice", aval, strides.size(), "strides");
          for (int i = 0; i < aval.rank(); ++i) {
            require_order(1, strides[i], [&] {
              return ShapeError(
                  axis_text("slice", i, inputs[0]) + "the stride is " + strides[i].to_string(),
                  "give a stride of 1 or more; rev reverses an axis");
            });
            require_order(0, start[i], [&] {
              return ShapeError(axis_text("slice", i, inputs[0]) + "the start " +
                                    start[i].to_string() + " is negative",
                                "give a start of 0 or more; slice_in_dim and [] count negative "
                                "ones from the end");
            });
            require_order(start[i], limit[i], [&] {
              return ShapeError(axis_text("slice", i, inputs[0]) + "the start " +
                                    start[i].to_string() + " is beyond the limit " +
                                    limit[i].to_string(),
                                "give a start that is at most the limit");
            });
            require_order(limit[i], inputs[0].shape[i], [&] {
              return ShapeError(axis_text("slice", i, inputs[0]) + "the limit " +
                                    limit[i].to_string() + " is beyond the size " +
                                    inputs[0].shape[i].to_string(),
                                "give a limit that is at most the size");
            });
            const Dim length = limit[i] - start[i];
            aval.shape[i] = strides[i] == Dim(1) ? length : ceil_divide(length, strides[i]);
          }
          return std::vector<Aval>{aval};
        })
        .rule<Identity>([](std::span<const Aval> inputs, const Params& params) {
          const Shape& shape = inputs[0].shape;
          return params.get<Shape>("limit") == shape &&
                 params.get<Shape>("start") == Shape(shape.size(), Dim(0)) &&
                 params.get<Shape>("strides") == Shape(shape.size(), Dim(1));
        })
        .rule<Alias>([](const View& input, const Sizes64& shape,
                        const Params& params) -> std::optional<View> {
          const Shape &start = params.get<Shape>("start"), &strides = params.get<Shape>("strides");
          View view = input;
          for (int i = 0; i < input.rank(); ++i) {
            view = part_of(view, i, start[i].constant(), shape[i]);
            view.strides[i] *= strides[i].constant();
          }
          return view;
        })
        .rule<Put>(put_slice)
        .rule<Cost>(cost::moves_parts())
        .rule<Spelling>([](const EquationWriter& w) -> spelling::Text {
          std::vector<std::string> arguments{w.operand(0), w.dims("start"), w.dims("limit")};
          const Shape& strides = w.params().get<Shape>("strides");
          if (!std::all_of(strides.begin(), strides.end(),
                           [](Dim stride) { return stride == Dim(1); }))
            arguments.push_back(w.shape(strides));
          return w.call("slice", arguments);
        })
        .rule<Jvp>(linear_through(slice_p))
        .rule<Transpose>([](auto cotangents, auto inputs, const Params& params) -> Tangents {
          const Array& ct = cotangents[0].array();
          return {spread_slice(ct, inputs[0].aval().shape, params)};
        })
        .rule<Batch>([](Dim size, std::span<const Batched> inputs,
                        const Params& params) -> std::vector<Batched> {
          const int dim = *inputs[0].dim;
          return {{lax::slice(inputs[0].array, inserted(params.get<Shape>("start"), dim, 0),
                              inserted(params.get<Shape>("limit"), dim, size),
                              inserted(params.get<Shape>("strides"), dim, 1)),
                   dim}};
        })
        .rule<Separate>([](const Separate::Along& along, const Params& params) {
          if (!along.from[0]) return false;
          const int axis = *along.from[0];  // the result's is as long
          return params.get<Shape>("start")[axis] == Dim(0) &&
                 params.get<Shape>("strides")[axis] == Dim(1);
        })
        .rule<Mask>([](std::span<const Masked> inputs, std::span<const Aval> outputs,
                       const Params& params, const SizeValues& sizes) {
          Shape start = params.get<Shape>("start"), strides = params.get<Shape>("strides"), limit;
          Array x = inputs[0].padded;
          const Shape bounds = bounds_of(outputs[0].shape, sizes);
          for (int i = 0; i < x.ndim(); ++i) {
            if (!strides[i].is_constant()) {
              const Array first = sizes.value(start[i]), stride = sizes.value(strides[i]);
              const Array steps = lax::mul(positions({bounds[i]}, 0), stride);
              x = taken(x, i, lax::add(steps, first));
              start[i] = 0, strides[i] = 1;
            } else if (!start[i].is_constant()) {
              x = shifted(x, i, sizes.value(start[i]), dilated(bounds[i], strides[i] - 1));
              start[i] = 0;
            }
            limit.push_back(start[i] + dilated(bounds[i], strides[i] - 1));
            if (!less_equal(limit[i], x.shape(i)).value_or(false)) x = resized(x, i, limit[i]);
          }
          return Arrays{lax::slice(x, start, limit, strides)};
        })
        .rule<Samples>([] {
          auto params = [](Shape start, Shape limit, Shape strides) {
            return Params{{"start", start}, {"limit", limit}, {"strides", strides}};
          };
          return std::vector<Sample>{{{matrix}, params({1, 0}, {3, 5}, {1, 1})},
                                     {{matrix}, params({0, 1}, {4, 5}, {2, 3})},
                                     {{matrix}, params({2, 2}, {2, 4}, {1, 2})},
                                     {{scalar}, params({}, {}, {})}};
        });
Array lax::slice(Operand operand, const Shape& start_indices, const Shape& limit_indices,
                 const Shape& strides) {
  const Shape every = strides.empty() ? Shape(start_indices.size(), Dim(1)) : strides;
  const Params params = last_params(
      [&] {
        return Params{{"start", start_indices}, {"limit", limit_indices}, {"strides", every}};
      },
      start_indices, limit_indices, every);
  return bind(slice_p, {operand}, params);
}
Array lax::slice_in_dim(Operand operand, std::optional<Dim> start_index,
                        std::optional<Dim> limit_index, Dim stride, int axis) {
  axis = normalize_axis(axis, operand.ndim(), "slice_in_dim");
  const Dim size = operand.shape(axis);
  auto from_end = [&](Dim index) {
    return less_equal(index, -1).value_or(false) ? index + size : index;
  };
  Shape start(operand.ndim(), Dim(0)), limit = operand.shape(), strides(operand.ndim(), Dim(1));
  if (start_index) start[axis] = from_end(*start_index);
  if (limit_index) limit[axis] = from_end(*limit_index);
  strides[axis] = stride;
  return lax::slice(operand, start, limit, strides);
}
Array lax::index_in_dim(Operand operand, std::int64_t index, int axis, bool keepdims) {
  axis = normalize_axis(axis, operand.ndim(), "index_in_dim");
  const Dim size = operand.shape(axis), at = index < 0 ? Dim(index) + size : Dim(index);
  auto outside = [&]() -> ShapeError {
    throw IndexError("index_in_dim: index " + std::to_string(index) +
                         " is out of bounds for axis " + std::to_string(axis) + " with size " +
                         size.to_string(),
                     "use an index from -size to size - 1");
  };
  require_order(0, at, outside);
  require_order(at + 1, size, outside);
  const Array one = lax::slice_in_dim(operand, at, at + 1, 1, axis);
  if (keepdims) return one;
  Shape shape = one.shape();
  shape.erase(axis);
  return lax::reshape(one, shape);
}

// --- concatenate ---------------------------------------------------------------------------------

namespace {

int axis_of(const Params& params) { return int(params.integer("axis")); }

std::vector<Aval> concatenate_aval(std::span<const Aval> inputs, const Params& params) {
  if (inputs.empty()) throw ShapeError("concatenate: there are no arrays", "give one or more");
  Aval aval = inputs[0];
  const int axis = equation_axis(params.integer("axis"), aval.rank(), "concatenate");
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].dtype != aval.dtype)
      throw DtypeError("concatenate: array 0 has dtype " + std::string(name_of(aval.dtype)) +
                           " and array " + std::to_string(i) + " dtype " +
                           std::string(name_of(inputs[i].dtype)),
                       "convert one with astype, or use the plait.numpy function, which promotes");
    Shape rest = inputs[i].shape, expected = inputs[0].shape;
    if (rest.rank() == expected.rank()) rest[axis] = expected[axis] = 0;
    if (!(rest == expected))
      throw ShapeError("concatenate: array 0 has shape " + text_of(inputs[0].shape) +
                           " and array " + std::to_string(i) + " shape " + text_of(inputs[i].shape),
                       "give shapes that agree but for axis " + std::to_string(axis));
    aval.shape[axis] = aval.shape[axis] + inputs[i].shape[axis];
    aval.weak &= inputs[i].weak;
  }
  return {aval};
}

Tangents transpose_concatenate(std::span<const Tangent> cotangents,
                               std::span<const TransposeInput> inputs, const Params& params) {
  const int axis = axis_of(params);
  Tangents result;
  Dim start = 0;
  for (const TransposeInput& input : inputs) {
    const Dim end = start + input.aval().shape[axis];
    if (input.is_linear())
      result.push_back(lax::slice_in_dim(cotangents[0].array(), start, end, 1, axis));
    else
      result.push_back(Tangent(input.aval()));
    start = end;
  }
  return result;
}

// The parts up to the first ragged one stay in place. Each later one is written over the padding of
// those before it, where their real elements end.
Arrays mask_concatenate(std::span<const Masked> inputs, std::span<const Aval> outputs,
                        const Params& params, const SizeValues& sizes) {
  const int axis = axis_of(params);
  Arrays fixed;
  Dim room = 0, end = 0;
  std::size_t next = 0;
  while (next < inputs.size() && end.is_constant()) {
    end = end + inputs[next].aval.shape[axis];
    fixed.push_back(inputs[next++].padded);
  }
  for (const Masked& input : inputs) room = room + input.padded.shape(axis);
  Array out = lax::concatenate(fixed, axis);
  if (next < inputs.size()) out = resized(out, axis, room);
  for (; next < inputs.size(); ++next) {
    Arrays operands{out, inputs[next].padded};
    for (int i = 0; i < out.ndim(); ++i)
      operands.push_back(i == axis ? sizes.value(end) : Array::literal(0, DType::int32));
    out = bind(dynamic_update_slice_p, operands);
    end = end + inputs[next].aval.shape[axis];
  }
  return {resized(out, axis, bounds_of(outputs[0].shape, sizes)[axis])};
}

}  // namespace

constinit const Primitive concatenate_p{"concatenate"};
static const auto concatenate_def =
    define(concatenate_p, "The operands one after another along an axis.")
        .takes_stored()
        .rule<Abstract>(concatenate_aval)
        .rule<Identity>(
            [](std::span<const Aval> inputs, const Params&) { return inputs.size() == 1; })
        .rule<Emit>([](loops::Writer& w, const Equation& equation,
                       std::span<const loops::Tensor> inputs) -> loops::Tensors {
          std::vector<Aval> avals;
          for (const loops::Tensor& input : inputs) avals.push_back(input.aval);
          const Aval aval = concatenate_aval(avals, equation.params)[0];
          const int axis = axis_of(equation.params);
          std::vector<loops::Writer::Part> parts;
          Sizes64 start(std::size_t(aval.rank()), 0);
          for (const loops::Tensor& input : inputs) {
            parts.push_back({input, start});
            start[std::size_t(axis)] += input.aval.shape[axis].constant();
          }
          return {w.composed(aval, parts, {}, equation.source)};
        })
        .rule<Eval>(
            [](std::span<const View> inputs, std::span<const View> outputs, const Params& params) {
              const int axis = axis_of(params);
              std::int64_t start = 0;
              for (const View& input : inputs) {
                copy_elements(input, part_of(outputs[0], axis, start, input.shape[axis]));
                start += input.shape[axis];
              }
            })
        .rule<Cost>(cost::moves())
        .rule<Autocast>(Autocast::follows)
        .rule<Spelling>([](const EquationWriter& w) -> spelling::Text {
          return w.call("concatenate", {w.list(w.operands()), w.dim("axis")});
        })
        .rule<PictureGroup>(PictureGroup::movement)
        .rule<Speculate>({})
        .rule<Motion>(Motion::moves)
        .rule<Jvp>(
            [](auto, std::span<const Tangent> tangents, auto, const Params& params) -> Tangents {
              Arrays parts;
              for (const Tangent& tangent : tangents) parts.push_back(tangent.instantiate());
              return {Array(bind(concatenate_p, parts, params))};
            })
        .rule<Transpose>(transpose_concatenate)
        .rule<Batch>([](Dim size, std::span<const Batched> inputs,
                        const Params& params) -> std::vector<Batched> {
          int dim = 0;
          for (const Batched& input : inputs)
            if (input.dim) dim = *input.dim;
          Arrays parts;
          for (const Batched& input : inputs) parts.push_back(move_batch(input, size, dim));
          const int axis = axis_of(params);
          return {{lax::concatenate(parts, axis < dim ? axis : axis + 1), dim}};
        })
        .rule<Separate>(separate::beside_axis)
        .rule<Mask>(mask_concatenate)
        .rule<Samples>([] {
          const Sample::Input wide{{{4, 2}, DType::float64}}, empty{{{4, 0}, DType::float64}};
          return std::vector<Sample>{{{matrix, wide, empty, wide}, {{"axis", Dim(1)}}},
                                     {{matrix, matrix}, {{"axis", Dim(0)}}},
                                     {{matrix}, {{"axis", Dim(0)}}}};
        });
Array lax::concatenate(Operands operands, int dimension) {
  if (!operands.empty()) dimension = normalize_axis(dimension, operands[0].ndim(), "concatenate");
  return bind(concatenate_p, operands, {{"axis", Dim(dimension)}});
}

// --- split ---------------------------------------------------------------------------------------

namespace {

std::vector<Aval> split_aval(std::span<const Aval> inputs, const Params& params) {
  const Shape& sizes = params.get<Shape>("pieces");
  const int axis = equation_axis(params.integer("axis"), inputs[0].rank(), "split");
  Dim total = 0;
  std::vector<Aval> avals;
  for (Dim size : sizes) {
    require_order(0, size, [&] {
      return ShapeError(
          axis_text("split", axis, inputs[0]) + "a piece has the size " + size.to_string(),
          "give sizes >= 0");
    });
    total = total + size;
    avals.push_back(inputs[0]);
    avals.back().shape[axis] = size;
  }
  if (!(total == inputs[0].shape[axis]))
    throw ShapeError(axis_text("split", axis, inputs[0]) + "the pieces (" + sizes.to_string() +
                         ") add up to " + total.to_string(),
                     "give sizes that add up to " + inputs[0].shape[axis].to_string());
  return avals;
}

}  // namespace

constinit const Primitive split_p{"split"};
static const auto split_def =
    define(split_p, "Consecutive pieces of the given sizes along an axis.")
        .operands(1)
        .takes_stored()
        .rule<Abstract>(split_aval)
        .rule<Identity>([](std::span<const Aval> inputs, const Params& params) {
          const int axis = axis_of(params);
          return axis >= 0 && axis < inputs[0].rank() &&
                 params.get<Shape>("pieces") == Shape{inputs[0].shape[axis]};
        })
        .rule<Share>([](const View& input, std::span<const Sizes64> shapes, const Params& params) {
          const int axis = axis_of(params);
          std::vector<View> pieces;
          std::int64_t start = 0;
          for (const Sizes64& shape : shapes) {
            pieces.push_back(part_of(input, axis, start, shape[std::size_t(axis)]));
            start += shape[std::size_t(axis)];
          }
          return pieces;
        })
        .rule<Emit>(
            [](loops::Writer& w, const Equation& equation, std::span<const loops::Tensor> inputs) {
              const int axis = axis_of(equation.params);
              const loops::Tensor whole = w.in_memory(inputs[0]);
              loops::Tensors pieces;
              std::int64_t start = 0;
              for (Dim size : equation.params.get<Shape>("pieces")) {
                loops::Tensor piece = whole;
                piece.aval.shape[axis] = size;
                piece.place.offset += start * whole.strides[std::size_t(axis)];
                start += size.constant();
                pieces.push_back(std::move(piece));
              }
              return pieces;
            })
        .rule<Eval>(
            [](std::span<const View> inputs, std::span<const View> outputs, const Params& params) {
              const int axis = axis_of(params);
              std::int64_t start = 0;
              for (const View& output : outputs) {
                copy_elements(part_of(inputs[0], axis, start, output.shape[axis]), output);
                start += output.shape[axis];
              }
            })
        .rule<Put>(
            [](const Array& x, const Array& value, std::size_t output, const Params& params) {
              Shape start(x.ndim(), Dim(0));
              const Shape& pieces = params.get<Shape>("pieces");
              for (std::size_t i = 0; i < output; ++i)
                start[axis_of(params)] = start[axis_of(params)] + pieces[i];
              return put_window(x, value, start);
            })
        .rule<Cost>(cost::moves())
        .rule<Autocast>(Autocast::follows)
        .rule<Spelling>([](const EquationWriter& w) -> spelling::Text {
          return w.call("split", {w.operand(0), w.dims("pieces"), w.dim("axis")});
        })
        .rule<PictureGroup>(PictureGroup::other)
        .rule<Speculate>({})
        .rule<Motion>(Motion::layout)
        .rule<Jvp>(
            [](auto, std::span<const Tangent> tangents, auto, const Params& params) -> Tangents {
              const Arrays pieces = bind(split_p, {tangents[0].array()}, params);
              return {pieces.begin(), pieces.end()};
            })
        .rule<Transpose>(
            [](std::span<const Tangent> cotangents, auto, const Params& params) -> Tangents {
              Arrays parts;
              for (const Tangent& ct : cotangents) parts.push_back(ct.instantiate());
              return {lax::concatenate(parts, axis_of(params))};
            })
        .rule<Batch>([](Dim, std::span<const Batched> inputs, const Params& params) {
          const int dim = *inputs[0].dim, axis = axis_of(params);
          std::vector<Batched> results;
          for (Array& piece : lax::split(inputs[0].array, params.get<Shape>("pieces"),
                                         axis < dim ? axis : axis + 1))
            results.push_back({std::move(piece), dim});
          return results;
        })
        .rule<Separate>(separate::beside_axis)
        .rule<Mask>([](std::span<const Masked> inputs, auto outputs, const Params& params,
                       const SizeValues& sizes) {
          const int axis = axis_of(params);
          const Array& x = inputs[0].padded;
          if (params.get<Shape>("pieces").is_constant()) return Arrays(bind(split_p, {x}, params));
          Arrays pieces;
          Dim start = 0;
          for (const Aval& output : outputs) {
            const Dim bound = bounds_of(output.shape, sizes)[axis];
            if (!start.is_constant())
              pieces.push_back(shifted(x, axis, sizes.value(start), bound));
            else
              pieces.push_back(
                  resized(lax::slice_in_dim(x, start, x.shape(axis), 1, axis), axis, bound));
            start = start + output.shape[axis];
          }
          return pieces;
        })
        .rule<Samples>([] {
          return std::vector<Sample>{{{matrix}, {{"pieces", Shape{2, 0, 3}}, {"axis", Dim(1)}}},
                                     {{matrix}, {{"pieces", Shape{1, 3}}, {"axis", Dim(0)}}},
                                     {{matrix}, {{"pieces", Shape{4}}, {"axis", Dim(0)}}}};
        });
Arrays lax::split(Operand operand, const Shape& sizes, int axis) {
  return bind(split_p, {operand},
              {{"pieces", sizes}, {"axis", Dim(normalize_axis(axis, operand.ndim(), "split"))}});
}

// --- rev -----------------------------------------------------------------------------------------

constinit const Primitive rev_p{"rev"};
static const auto rev_def =
    define(rev_p, "Elements in reverse order along the given axes.")
        .family(movement())
        .rule<Motion>(Motion::moves)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const std::vector<int> axes = params.ints("axes");
          for (std::size_t i = 0; i < axes.size(); ++i)
            if (axes[i] < 0 || axes[i] >= inputs[0].rank() ||
                std::count(axes.begin(), axes.end(), axes[i]) > 1)
              throw ShapeError("rev: the axes (" + params.get<Shape>("axes").to_string() +
                                   ") of an array of shape " + text_of(inputs[0].shape) +
                                   " are not distinct axes of it",
                               "name axes from 0 to " + std::to_string(inputs[0].rank() - 1) +
                                   ", each at most once");
          return std::vector<Aval>{inputs[0]};
        })
        .rule<Identity>([](std::span<const Aval> inputs, const Params& params) {
          for (int axis : params.ints("axes"))
            if (axis < 0 || axis >= inputs[0].rank() ||
                !less_equal(inputs[0].shape[axis], 1).value_or(false))
              return false;
          return true;
        })
        .rule<Alias>([](const View& input, const Sizes64&,
                        const Params& params) -> std::optional<View> {
          View view = input;
          if (num_elements(view.shape) == 0) return view;
          for (int axis : params.ints("axes")) {
            view.data =
                view.as<char>() + (view.shape[axis] - 1) * view.strides[axis] * size_of(view.dtype);
            view.strides[axis] = -view.strides[axis];
          }
          return view;
        })
        .rule<Put>([](const Array&, const Array& value, std::size_t, const Params& params) {
          return lax::rev(value, params.ints("axes"));
        })
        .rule<Spelling>([](const EquationWriter& w) -> spelling::Text {
          return w.call("rev", {w.operand(0), w.ints("axes")});
        })
        .rule<Jvp>(linear_through(rev_p))
        .rule<Transpose>(
            [](std::span<const Tangent> cotangents, auto, const Params& params) -> Tangents {
              return {Array(bind(rev_p, {cotangents[0].array()}, params))};
            })
        .rule<Batch>(
            [](Dim, std::span<const Batched> inputs, const Params& params) -> std::vector<Batched> {
              std::vector<int> axes;
              for (int axis : params.ints("axes"))
                axes.push_back(axis < *inputs[0].dim ? axis : axis + 1);
              return {{lax::rev(inputs[0].array, axes), inputs[0].dim}};
            })
        .rule<Mask>([](std::span<const Masked> inputs, auto, const Params& params,
                       const SizeValues& sizes) {
          Array x = bind(rev_p, {inputs[0].padded}, params);
          for (int axis : params.ints("axes")) {  // the padding comes first, then the real elements
            const Dim size = inputs[0].aval.shape[axis], bound = x.shape(axis);
            if (!size.is_constant()) x = shifted(x, axis, sizes.value(bound - size), bound);
          }
          return Arrays{x};
        })
        .rule<Samples>([] {
          return std::vector<Sample>{{{matrix}, {{"axes", Shape{0}}}},
                                     {{matrix}, {{"axes", Shape{1, 0}}}},
                                     {{matrix}, {{"axes", Shape{}}}}};
        });
Array lax::rev(Operand operand, std::span<const int> dimensions) {
  Shape axes;
  for (int axis : dimensions) axes.push_back(normalize_axis(axis, operand.ndim(), "rev"));
  return bind(rev_p, {operand}, {{"axes", axes}});
}

}  // namespace plait
