// pad: an array with copies of a scalar around and between its elements, or with elements removed
// at its ends.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/autocast.h>
#include <plait/rules/emit.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/separate.h>
#include <plait/rules/speculate.h>

#include "primitives/cost.h"
#include "primitives/indexing/indexing.h"
#include "primitives/last_params.h"
#include "primitives/spelling.h"

namespace plait {
namespace {

using namespace indexing;

const Sample::Input& matrix = *new const Sample::Input{{{4, 5}, DType::float64}};
const Sample::Input& scalar = *new const Sample::Input{{{}, DType::float64}};

// The positions of an operand's elements: element j along an axis is at low + j * step of the
// result; `count` of them, from `first` on, lie inside it.
struct Placed {
  std::int64_t low, step, first, count;
};

Placed place(std::int64_t n, std::int64_t low, std::int64_t interior, std::int64_t size) {
  const std::int64_t step = interior + 1;
  const std::int64_t first = low < 0 ? (-low + step - 1) / step : 0;
  const std::int64_t end = size <= low ? 0 : std::min(n, (size - 1 - low) / step + 1);
  return {low, step, first, std::max<std::int64_t>(0, end - first)};
}

void fill(const View& dst, const View& value) {
  View src = dst;
  src.data = value.data;
  std::fill(src.strides.begin(), src.strides.end(), 0);
  copy_elements(src, dst);
}

void eval_pad(std::span<const View> inputs, std::span<const View> outputs, const Params& params) {
  const Shape &low = params.get<Shape>("low"), &interior = params.get<Shape>("interior");
  View src = inputs[0], dst = outputs[0], middle = outputs[0];
  bool empty = false, gaps = false;
  std::vector<Placed> places;
  for (int i = 0; i < src.rank(); ++i) {
    places.push_back(place(src.shape[i], low[i].constant(), interior[i].constant(), dst.shape[i]));
    empty |= places[i].count == 0;
    gaps |= places[i].step > 1 && places[i].count > 1;
  }
  if (empty) return fill(outputs[0], inputs[1]);
  // The border axis by axis, then the gaps, then the elements.
  for (int i = 0; i < src.rank(); ++i) {
    const auto [l, step, first, count] = places[i];
    const std::int64_t begin = l + first * step, end = begin + (count - 1) * step + 1;
    fill(part_of(middle, i, 0, begin), inputs[1]);
    fill(part_of(middle, i, end, middle.shape[i] - end), inputs[1]);
    middle = part_of(middle, i, begin, end - begin);
    src = part_of(src, i, first, count);
    dst = part_of(dst, i, begin, count);
    dst.strides[i] *= step;
  }
  if (gaps) fill(middle, inputs[1]);
  copy_elements(src, dst);
}

std::vector<lax::Padding> padding_of(const Params& params) {
  const Shape &low = params.get<Shape>("low"), &high = params.get<Shape>("high"),
              &interior = params.get<Shape>("interior");
  std::vector<lax::Padding> padding;
  for (std::size_t i = 0; i < low.size(); ++i) padding.push_back({low[i], high[i], interior[i]});
  return padding;
}

// True where the operand's elements go, false where the padding value does.
Array placed_mask(const Shape& operand, const std::vector<lax::Padding>& padding) {
  return lax::pad(lax::full(operand, 0, DType::bool_), Array::literal(1, DType::bool_), padding);
}

// The cotangent of the padding value is the sum over its copies; that of the operand is the
// cotangent without the padding.
Tangents transpose_pad(std::span<const Tangent> cotangents, std::span<const TransposeInput> inputs,
                       const Params& params) {
  const Array& ct = cotangents[0].array();
  const std::vector<lax::Padding> padding = padding_of(params);
  const Shape& shape = inputs[0].aval().shape;
  Tangents result{Tangent(inputs[0].aval()), Tangent(inputs[1].aval())};
  if (inputs[0].is_linear()) {
    std::vector<lax::Padding> undo;
    Shape limit, strides;
    for (int i = 0; i < shape.rank(); ++i) {
      const auto [low, high, interior] = padding[i];
      // Cut to size * step elements, including some zeros at the end, so that every step-th gives
      // `size` elements.
      const Dim step = interior + 1, all = interior == Dim(0) ? shape[i] : shape[i] * step;
      undo.push_back({-low, all - dilated(shape[i], interior) - high, 0});
      limit.push_back(all);
      strides.push_back(step);
    }
    const Array whole = lax::pad(ct, Array::literal(0, ct.dtype()), undo);
    result[0] = lax::slice(whole, Shape(shape.size(), Dim(0)), limit, strides);
  }
  if (inputs[1].is_linear()) {
    const Array zero = lax::zeros_like(ct.aval());
    result[1] =
        unbroadcast_cotangent(lax::select(placed_mask(shape, padding), ct, zero), inputs[1].aval());
  }
  return result;
}

std::vector<Batched> batch_pad(Dim size, std::span<const Batched> inputs, const Params& params) {
  const Batched &x = inputs[0], &value = inputs[1];
  std::vector<lax::Padding> padding = padding_of(params);
  const int dim = x.dim.value_or(0);
  padding.insert(padding.begin() + dim, lax::Padding{});
  const Array operand = x.dim ? x.array : batch_to_front(x, size);
  if (!value.dim) return {{lax::pad(operand, value.array, padding), dim}};
  const Array padded = lax::pad(operand, Array::literal(0, operand.dtype()), padding);
  const int dims[] = {dim};
  const Array values = lax::broadcast_in_dim(value.array, padded.shape(), dims);
  return {{lax::select(placed_mask(operand.shape(), padding), values, padded), dim}};
}

// An axis of n real elements, padded by `interior` others between any two when that is a size:
// element i of the result is element i / step when that is exact and real.
Array dilated_at_run_time(const Array& x, const Array& value, int axis, Dim n, Dim interior,
                          Dim bound, const SizeValues& sizes) {
  const Array place = positions({bound}, 0), step = sizes.value(interior + 1);
  const Array source = lax::div(place, step), rest = lax::rem(place, step);
  const Array exact = lax::eq(rest, literal_like(rest, 0)), real = lax::lt(source, sizes.value(n));
  const Array spread = taken(x, axis, source);
  const int dims[] = {axis};
  const Array keep = lax::broadcast_in_dim(lax::bitwise_and(exact, real), spread.shape(), dims);
  return lax::select(keep, spread, value);
}

Arrays mask_pad(std::span<const Masked> inputs, std::span<const Aval> outputs, const Params& params,
                const SizeValues& sizes) {
  const Shape &shape = inputs[0].aval.shape, bounds = bounds_of(outputs[0].shape, sizes);
  const Array& value = inputs[1].padded;
  std::vector<lax::Padding> padding = padding_of(params);
  // Along padded axes, the padding value begins here, after the last real element.
  std::vector<int> ragged;
  for (int i = 0; i < shape.rank(); ++i) {
    const auto& [low, high, interior] = padding[i];
    const bool untouched = low == Dim(0) && high == Dim(0) && interior == Dim(0);
    if (!shape[i].is_constant() && !untouched) ragged.push_back(i);
  }
  Array x = ragged.empty() ? inputs[0].padded : fill_padding(inputs[0], value, sizes, ragged);
  for (int i = 0; i < x.ndim(); ++i) {
    auto& [low, high, interior] = padding[i];
    if (!interior.is_constant()) {
      const Dim longest = sizes.bound(dilated(shape[i], interior));
      x = dilated_at_run_time(x, value, i, shape[i], interior, longest, sizes);
      interior = 0;
    }
    const Dim length = dilated(x.shape(i), interior);
    if (low.is_constant()) {
      high = bounds[i] - low - length;
      continue;
    }
    // A window between two borders of the padding value, which starts `low` before the elements.
    std::vector<lax::Padding> borders(x.ndim());
    borders[i] = {bounds[i], bounds[i], interior};
    const Array wide = lax::pad(x, value, borders);
    Arrays operands{wide};
    for (int j = 0; j < x.ndim(); ++j)
      operands.push_back(j == i ? sizes.value(bounds[i] - low) : Array::literal(0, DType::int32));
    Shape window = wide.shape();
    window[i] = bounds[i];
    x = bind(dynamic_slice_p, operands, {{"slice_sizes", window}});
    padding[i] = {};
  }
  return {lax::pad(x, value, padding)};
}

loops::Tensors emit_pad(loops::Writer& w, const Equation& equation,
                        std::span<const loops::Tensor> inputs) {
  const Sizes64 low = equation.params.get<Shape>("low").to_sizes(),
                high = equation.params.get<Shape>("high").to_sizes(),
                interior = equation.params.get<Shape>("interior").to_sizes();
  const bool is_dilated =
      std::any_of(interior.begin(), interior.end(), [](std::int64_t size) { return size != 0; });
  Aval aval = inputs[0].aval;
  for (std::size_t axis = 0; axis < low.size(); ++axis) {
    if (is_dilated && (low[axis] < 0 || high[axis] < 0))
      w.refuse("`pad` that takes elements away between others");
    const std::int64_t size = aval.shape[int(axis)].constant();
    aval.shape[int(axis)] = low[axis] + size + interior[axis] * (size - 1) + high[axis];
  }
  if (!is_dilated) return {w.composed(aval, {{inputs[0], low}}, inputs[1], equation.source)};
  const loops::Value value = w.elements_of(inputs[1])[0];
  const loops::Tensor whole = w.make(aval);
  w.copy(w.computed(aval, {[value](std::span<const loops::Index>) { return value; }}), whole);
  loops::Tensor part = whole;
  part.aval = inputs[0].aval;
  for (std::size_t axis = 0; axis < low.size(); ++axis) {
    part.place.offset += low[axis] * whole.strides[axis];
    part.strides[axis] *= interior[axis] + 1;
  }
  w.copy(inputs[0], part);
  return {whole};
}

}  // namespace

constinit const Primitive pad_p{"pad"};
static const auto pad_def =
    define(pad_p,
           "The first operand with copies of the second, a scalar, before (low), after (high) and "
           "between (interior) its "
           "elements along every axis; negative low and high take elements away.")
        .operands(2)
        .takes_stored()
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          Aval aval = inputs[0];
          require_same_dtype("pad", aval, inputs[1], "the padding value has");
          if (inputs[1].rank() != 0)
            throw ShapeError("pad: the padding value has shape " + text_of(inputs[1].shape),
                             "give a scalar");
          const Shape &low = params.get<Shape>("low"), &high = params.get<Shape>("high"),
                      &interior = params.get<Shape>("interior");
          require_entries("pad", aval, low.size(), "triples of low, high and interior padding");
          for (int i = 0; i < aval.rank(); ++i) {
            require_order(0, interior[i], [&] {
              return ShapeError(
                  axis_text("pad", i, inputs[0]) + "the interior padding is " +
                      interior[i].to_string(),
                  "give interior padding of 0 or more; slice takes every n-th element");
            });
            aval.shape[i] = low[i] + dilated(aval.shape[i], interior[i]) + high[i];
            require_order(0, aval.shape[i], [&] {
              return ShapeError(axis_text("pad", i, inputs[0]) + "padding by low " +
                                    low[i].to_string() + ", high " + high[i].to_string() +
                                    " and interior " + interior[i].to_string() +
                                    " gives the size " + aval.shape[i].to_string(),
                                "take fewer elements away");
            });
          }
          aval.weak = inputs[0].weak && inputs[1].weak;
          return std::vector<Aval>{aval};
        })
        .rule<Identity>([](std::span<const Aval> inputs, const Params& params) {
          const Shape none(inputs[0].shape.size(), Dim(0));
          for (const char* side : {"low", "high", "interior"})
            if (!(params.get<Shape>(side) == none)) return false;
          return inputs[1].dtype == inputs[0].dtype && inputs[1].rank() == 0 &&
                 (inputs[1].weak || !inputs[0].weak);
        })
        .rule<Eval>(eval_pad)
        .rule<Emit>(emit_pad)
        .rule<Cost>(cost::moves())
        .rule<Autocast>(Autocast::follows)
        .rule<Spelling>([](const EquationWriter& w) -> spelling::Text {
          const Shape &low = w.params().get<Shape>("low"), &high = w.params().get<Shape>("high"),
                      &interior = w.params().get<Shape>("interior");
          std::vector<std::string> axes;
          for (std::size_t i = 0; i < low.size(); ++i)
            axes.push_back(w.list({w.text(low[i]), w.text(high[i]), w.text(interior[i])}));
          return w.call("pad", {w.operand(0), w.number(1), w.list(axes)});
        })
        .rule<PictureGroup>(PictureGroup::movement)
        .rule<Speculate>({})
        .rule<Motion>(Motion::moves)
        .rule<Jvp>([](std::span<const Array>, std::span<const Tangent> tangents,
                      std::span<const Array>, const Params& params) -> Tangents {
          const Array x = tangents[0].instantiate(), value = tangents[1].instantiate();
          return {Array(bind(pad_p, {x, value}, params))};
        })
        .rule<Transpose>(transpose_pad)
        .rule<Batch>(batch_pad)
        .rule<Separate>([](const Separate::Along& along, const Params& params) {
          if (!along.from[0] || along.from[1]) return false;
          const int axis = *along.from[0];
          for (const char* name : {"low", "high", "interior"})
            if (!(params.get<Shape>(name)[axis] == Dim(0))) return false;
          return true;
        })
        .rule<Mask>(mask_pad)
        .rule<Samples>([] {
          auto params = [](Shape low, Shape high, Shape interior) {
            return Params{{"low", low}, {"high", high}, {"interior", interior}};
          };
          const Sample::Input empty{{{0, 2}, DType::float64}};
          return std::vector<Sample>{{{matrix, scalar}, params({1, 0}, {2, 3}, {0, 0})},
                                     {{matrix, scalar}, params({-1, 2}, {1, -3}, {0, 0})},
                                     {{matrix, scalar}, params({1, -2}, {-2, 1}, {2, 1})},
                                     {{matrix, scalar}, params({-6, 0}, {5, 0}, {1, 0})},
                                     {{empty, scalar}, params({1, 0}, {1, 0}, {2, 0})},
                                     {{scalar, scalar}, params({}, {}, {})}};
        });
Array lax::pad(Operand operand, Operand padding_value, const std::vector<Padding>& padding_config) {
  Shape low, high, interior;
  for (const Padding& padding : padding_config) {
    low.push_back(padding.low);
    high.push_back(padding.high);
    interior.push_back(padding.interior);
  }
  const Params params =
      last_params([&] { return Params{{"low", low}, {"high", high}, {"interior", interior}}; }, low,
                  high, interior);
  return bind(pad_p, {operand, in_dtype_of(padding_value, operand)}, params);
}

}  // namespace plait
