// conv: convolution over any number of spatial axes, with strides, padding, holes and groups.
//
// Its transpose is a convolution again. With respect to lhs, strides and base dilation change
// places and the kernel is reversed; with respect to rhs, the cotangent is the kernel. The
// reference kernel is in conv_kernel.cpp.
// SPDX-License-Identifier: Apache-2.0

#include <plait/rules/autocast.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include <algorithm>
#include <numeric>

#include "conv.h"
#include "primitives/cost.h"
#include "primitives/spelling.h"

namespace plait {
namespace {

using indexing::text_of;
using lax::ConvDimensions;

// --- Abstract -----------------------------------------------------------------------------------

void check_dimensions(const ConvDimensions& dimensions, const Aval& lhs, const Aval& rhs) {
  if (lhs.rank() < 2 || lhs.rank() != rhs.rank())
    throw ShapeError(
        "conv: operands have shapes " + text_of(lhs.shape) + " and " + text_of(rhs.shape),
        "give both as many dimensions, two or more: batch and feature, out and in feature, then "
        "spatial ones");
  const std::pair<const char*, const std::vector<int>*> specs[] = {
      {"lhs_spec", &dimensions.lhs_spec},
      {"rhs_spec", &dimensions.rhs_spec},
      {"out_spec", &dimensions.out_spec}};
  for (const auto& [name, spec] : specs) {
    std::vector<int> sorted = *spec;
    std::sort(sorted.begin(), sorted.end());
    bool good = int(sorted.size()) == lhs.rank();
    for (std::size_t i = 0; i < sorted.size(); ++i) good &= sorted[i] == int(i);
    if (!good)
      throw ShapeError(std::string("conv: ") + name + " " + text_of(to_shape(*spec)) +
                           " does not name each of the " + std::to_string(lhs.rank()) +
                           " dimensions once",
                       "give a permutation of 0 to " + std::to_string(lhs.rank() - 1));
  }
}

void check_divides(Dim groups, Dim size, const char* what, const char* of) {
  require_less_equal(modulo(size, groups), 0, [&] {
    return ShapeError(
        std::string("conv: ") + groups.to_string() + " groups do not divide the " +
            size.to_string() + " " + what + " of " + of,
        std::string("make the number of ") + what + " a multiple of the number of groups");
  });
}

std::vector<Aval> conv_abstract(std::span<const Aval> inputs, const Params& params) {
  const Aval &lhs = inputs[0], &rhs = inputs[1];
  require_dtype("conv", lhs, numbers);
  if (lhs.dtype != rhs.dtype)
    throw DtypeError("conv: operands have dtypes " + std::string(name_of(lhs.dtype)) + " and " +
                         std::string(name_of(rhs.dtype)),
                     "convert one with astype");
  check_dimensions(conv_dimensions_of(params), lhs, rhs);
  const Conv conv(params, rhs.shape);
  if (!numbers.has(conv.dtype) || category_of(conv.dtype) != category_of(lhs.dtype))
    throw DtypeError(
        "conv: a result of dtype " + std::string(name_of(conv.dtype)) + " from operands of dtype " +
            std::string(name_of(lhs.dtype)),
        "ask for a preferred_element_type of the same kind, integer, float or complex");
  const auto& [lhs_spec, rhs_spec, out_spec] = conv.dimensions;
  check_windows("conv", conv.windows, lhs.rank() - 2, lhs);
  for (const Dim groups : {conv.feature_groups, conv.batch_groups})
    require_less_equal(1, groups, [&] {
      return ShapeError("conv: the number of groups is " + groups.to_string(),
                        "give 1 or more groups");
    });
  if (!(conv.feature_groups == Dim(1)) && !(conv.batch_groups == Dim(1)))
    throw ShapeError("conv: both feature_group_count, " + conv.feature_groups.to_string() +
                         ", and batch_group_count, " + conv.batch_groups.to_string() +
                         ", are above 1",
                     "let one of them be 1");
  const Dim features = lhs.shape[lhs_spec[1]], kernel_features = rhs.shape[rhs_spec[1]];
  if (!(floor_divide(features, conv.feature_groups) == kernel_features))
    throw ShapeError("conv: lhs of shape " + text_of(lhs.shape) + " has " + features.to_string() +
                         " features, and rhs of shape " + text_of(rhs.shape) + " reads " +
                         kernel_features.to_string() + " in each of " +
                         conv.feature_groups.to_string() +
                         (conv.feature_groups == Dim(1) ? " group" : " groups"),
                     "make the features of lhs those of rhs times feature_group_count, or check "
                     "dimension_numbers");
  check_divides(conv.feature_groups, features, "features", "lhs");
  check_divides(conv.groups(), rhs.shape[rhs_spec[0]], "out features", "rhs");
  check_divides(conv.batch_groups, lhs.shape[lhs_spec[0]], "examples", "lhs");
  Aval out{Shape(lhs.rank(), 0), conv.dtype, lhs.weak && rhs.weak && conv.dtype == lhs.dtype};
  out.shape[out_spec[0]] = floor_divide(lhs.shape[lhs_spec[0]], conv.batch_groups);
  out.shape[out_spec[1]] = rhs.shape[rhs_spec[0]];
  for (int i = 0; i + 2 < lhs.rank(); ++i)
    out.shape[out_spec[i + 2]] = num_windows(lhs.shape[lhs_spec[i + 2]], conv.windows, i);
  return {out};
}

// --- Derivatives --------------------------------------------------------------------------------

// Merges axis src into axis dst (numbered without src) as its major part.
Array merge_axis(const Array& x, int src, int dst) {
  std::vector<int> order;
  for (int i = 0; i < x.ndim(); ++i)
    if (i != src) order.push_back(i);
  Shape shape;
  for (int axis : order) shape.push_back(x.shape(axis));
  shape[dst] = x.shape(src) * shape[dst];
  order.insert(order.begin() + dst, src);
  return lax::reshape(lax::transpose(x, order), shape);
}

// Splits an axis into `size` parts, the major axis, in place. The size divides the axis: a
// remainder that the canonical form of a named size cannot exclude is zero.
Array split_axis(const Array& x, int axis, Dim size) {
  const Dim part = floor_divide(x.shape(axis), size);
  const Array whole = indexing::resized(x, axis, size * part);
  Shape shape = whole.shape();
  shape[axis] = part;
  shape.insert(axis, size);
  return lax::reshape(whole, shape);
}

// A convolution in the wider dtype of its operands, for a result of another dtype.
Array conv_promoted(const Conv& conv, const Array& lhs, const Array& rhs) {
  const DType dtype = promote_types(lhs.dtype(), rhs.dtype());
  return conv(lax::convert_element_type(lhs, dtype), lax::convert_element_type(rhs, dtype));
}

std::vector<int> with_features_exchanged(std::vector<int> spec) {
  std::swap(spec[0], spec[1]);
  return spec;
}

Array transpose_lhs(const Conv& conv, const Array& ct, Array rhs, const Aval& lhs) {
  const auto& [lhs_spec, rhs_spec, out_spec] = conv.dimensions;
  const Windows& w = conv.windows;
  const Dim groups = conv.groups();
  if (!(groups == Dim(1)))  // each group's out features become in features of its kernels
    rhs = merge_axis(split_axis(rhs, rhs_spec[0], groups), rhs_spec[0], rhs_spec[1]);
  Conv back = conv;
  back.dimensions = {out_spec, with_features_exchanged(rhs_spec), lhs_spec};
  back.windows.strides = w.base_dilation;
  back.windows.base_dilation = w.strides;
  back.feature_groups = groups;
  back.batch_groups = 1;
  back.dtype = lhs.dtype;
  for (int i = 0; i < w.window.rank(); ++i) {
    back.windows.low[i] = dilated_size(w.window[i], w.window_dilation[i]) - w.low[i] - 1;
    back.windows.high[i] =
        high_for(lhs.shape[lhs_spec[i + 2]], ct.shape(out_spec[i + 2]), back.windows, i);
  }
  Array result = conv_promoted(back, ct, lax::rev(rhs, spatial(rhs_spec)));
  if (!(conv.batch_groups == Dim(1)))
    result =
        merge_axis(split_axis(result, lhs_spec[1], conv.batch_groups), lhs_spec[1], lhs_spec[0]);
  return indexing::resized(result, lhs_spec[0], lhs.shape[lhs_spec[0]]);
}

Array transpose_rhs(const Conv& conv, const Array& ct, const Array& lhs, const Aval& rhs) {
  const auto& [lhs_spec, rhs_spec, out_spec] = conv.dimensions;
  const Windows& w = conv.windows;
  Conv back = conv;
  back.dimensions = {with_features_exchanged(lhs_spec), with_features_exchanged(out_spec),
                     with_features_exchanged(rhs_spec)};
  back.windows.strides = w.window_dilation;
  back.windows.window_dilation = w.strides;
  std::swap(back.feature_groups, back.batch_groups);
  back.dtype = rhs.dtype;
  for (int i = 0; i < w.window.rank(); ++i) {
    back.windows.window[i] = ct.shape(out_spec[i + 2]);
    back.windows.high[i] = high_for(w.window[i], lhs.shape(lhs_spec[i + 2]), back.windows, i);
  }
  return conv_promoted(back, lhs, ct);
}

// --- Batching -----------------------------------------------------------------------------------

std::vector<Batched> conv_batch(Dim size, std::span<const Batched> inputs, const Params& params) {
  Conv conv(params);
  const auto& [lhs_spec, rhs_spec, out_spec] = conv.dimensions;
  const Array &lhs = inputs[0].array, &rhs = inputs[1].array;
  const std::optional<int> lhs_dim = inputs[0].dim, rhs_dim = inputs[1].dim;
  const Dim groups = conv.groups();
  // An axis split into [groups, rest], the batch merged into the rest.
  auto merge_within_groups = [&](const Array& x, int axis, int batch) {
    const Array parts = split_axis(x, axis + (batch <= axis), groups);
    return merge_axis(merge_axis(parts, batch + (axis < batch), axis + 1), axis, axis);
  };
  if (lhs_dim && rhs_dim) {  // every example becomes a group
    const bool by_batch = !(conv.batch_groups == Dim(1));
    (by_batch ? conv.batch_groups : conv.feature_groups) = groups * size;
    const Array out = conv(merge_axis(lhs, *lhs_dim, lhs_spec[by_batch ? 0 : 1]),
                           merge_axis(rhs, *rhs_dim, rhs_spec[0]));
    return {{split_axis(out, out_spec[1], size), out_spec[1]}};
  }
  if (lhs_dim) {
    const bool grouped = !(conv.batch_groups == Dim(1));
    const Array merged = grouped ? merge_within_groups(lhs, lhs_spec[0], *lhs_dim)
                                 : merge_axis(lhs, *lhs_dim, lhs_spec[0]);
    return {{split_axis(conv(merged, rhs), out_spec[0], size), out_spec[0]}};
  }
  if (groups == Dim(1)) {
    const Array out = conv(lhs, merge_axis(rhs, *rhs_dim, rhs_spec[0]));
    return {{split_axis(out, out_spec[1], size), out_spec[1]}};
  }
  Array out = conv(lhs, merge_within_groups(rhs, rhs_spec[0], *rhs_dim));
  out = split_axis(split_axis(out, out_spec[1], groups), out_spec[1] + 1, size);
  out = merge_axis(out, out_spec[1], out_spec[1] + 1);
  const Dim features = example_aval(inputs[1]).shape[rhs_spec[0]];
  return {{indexing::resized(out, out_spec[1] + 1, features), out_spec[1]}};
}

// --- Masking ------------------------------------------------------------------------------------

// An axis of `groups` parts whose common size is named. Its real elements are a prefix of the axis;
// the kernel needs them as prefixes of parts of equal padded size, each followed by fill, if any.
// That groups divide the size is a constraint of the program, which the canonical form of the size
// need not show.
Masked spread_groups(const Masked& x, int axis, Dim groups, const Array* fill,
                     const SizeValues& sizes) {
  const Dim part = floor_divide(x.aval.shape[axis], groups);
  if (groups == Dim(1) || part.is_constant())
    return {fill ? fill_padding(x, *fill, sizes, std::span(&axis, 1)) : x.padded, x.aval};
  Masked whole{indexing::resized(x.padded, axis, sizes.bound(groups * part)), x.aval};
  whole.aval.shape[axis] = groups * part;
  Aval split = whole.aval;
  split.shape[axis] = part;
  split.shape.insert(axis, groups);
  const int inner = axis + 1;
  Masked parts{rule<Mask>(reshape_p)(std::span(&whole, 1), std::span(&split, 1),
                                     {{"shape", split.shape}}, sizes)[0],
               split};
  if (fill) parts.padded = fill_padding(parts, *fill, sizes, std::span(&inner, 1));
  Shape merged = parts.padded.shape();
  merged[axis] = merged[axis] * merged[inner];
  merged.erase(inner);
  return {lax::reshape(parts.padded, merged), x.aval};
}

// The inverse, for results.
Array gather_groups(const Array& padded, const Aval& aval, int axis, Dim groups,
                    const SizeValues& sizes) {
  const Dim part = floor_divide(aval.shape[axis], groups);
  if (groups == Dim(1) || part.is_constant()) return padded;
  Aval split = aval, whole = aval;
  whole.shape[axis] = groups * part;
  split.shape[axis] = part;
  split.shape.insert(axis, groups);
  const Masked parts{split_axis(padded, axis, sizes.bound(groups)), split};
  const Array merged = rule<Mask>(reshape_p)(std::span(&parts, 1), std::span(&whole, 1),
                                             {{"shape", whole.shape}}, sizes)[0];
  return indexing::resized(merged, axis, sizes.bound(aval.shape[axis]));
}

Arrays conv_mask(std::span<const Masked> inputs, std::span<const Aval> outputs,
                 const Params& params, const SizeValues& sizes) {
  // Fills both operands, because 0 * NaN is NaN.
  Conv conv(params, inputs[1].aval.shape);
  const auto& [lhs_spec, rhs_spec, out_spec] = conv.dimensions;
  Windows& w = conv.windows;
  for (const Shape* list : {&w.strides, &w.window_dilation})
    if (!list->is_constant())
      throw ShapeError("mask: conv has strides or dilations of named sizes: " + text_of(w.strides) +
                           ", " + text_of(w.window_dilation),
                       "give strides and dilations as integers");
  const Array zero = Array::literal(0, inputs[0].aval.dtype);
  Masked lhs = place_under_windows(inputs[0], zero, spatial(lhs_spec), w, sizes);
  Masked rhs = {fill_padding(inputs[1], zero, sizes, spatial(rhs_spec)), inputs[1].aval};
  lhs = spread_groups(lhs, lhs_spec[1], conv.feature_groups, &zero, sizes);
  lhs = spread_groups(lhs, lhs_spec[0], conv.batch_groups, nullptr, sizes);
  rhs.padded = fill_padding(rhs, zero, sizes, std::span(&rhs_spec[1], 1));
  rhs = spread_groups(rhs, rhs_spec[0], conv.groups(), nullptr, sizes);
  for (std::size_t i = 0; i < w.high.size(); ++i) {
    w.window[i] = rhs.padded.shape(rhs_spec[i + 2]);
    w.high[i] = high_for(sizes.bound(outputs[0].shape[out_spec[i + 2]]),
                         lhs.padded.shape(lhs_spec[i + 2]), w, int(i));
  }
  const Dim groups = conv.groups();
  conv.feature_groups = sizes.bound(conv.feature_groups);
  conv.batch_groups = sizes.bound(conv.batch_groups);
  const Array out = conv(lhs.padded, rhs.padded);
  return {gather_groups(out, outputs[0], out_spec[1], groups, sizes)};
}

std::vector<Sample> conv_samples() {
  std::vector<Sample> samples;
  auto add = [&](Shape lhs, Shape rhs, const ConvDimensions& dimensions, const Windows& w,
                 Dim feature_groups = 1, Dim batch_groups = 1) {
    Conv conv({{"window_strides", w.strides},
               {"padding_low", w.low},
               {"padding_high", w.high},
               {"lhs_dilation", w.base_dilation},
               {"rhs_dilation", w.window_dilation},
               {"lhs_spec", to_shape(dimensions.lhs_spec)},
               {"rhs_spec", to_shape(dimensions.rhs_spec)},
               {"out_spec", to_shape(dimensions.out_spec)},
               {"feature_group_count", feature_groups},
               {"batch_group_count", batch_groups},
               {"dtype", DType::float64}});
    samples.push_back(
        {{{{std::move(lhs), DType::float64}}, {{std::move(rhs), DType::float64}}}, conv.params()});
  };
  const ConvDimensions first{{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}},
      last{{0, 3, 1, 2}, {3, 2, 0, 1}, {0, 3, 1, 2}};
  const ConvDimensions line{{0, 1, 2}, {0, 1, 2}, {0, 1, 2}};
  const Windows plain{{}, {1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}},
      same{{}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
  add({2, 3, 4, 5}, {4, 3, 2, 3}, first, plain);
  add({2, 5, 4, 3}, {3, 3, 3, 2}, last, same);
  add({1, 2, 6, 5}, {3, 2, 3, 2}, first, {{}, {2, 3}, {1, 0}, {2, 1}, {1, 1}, {1, 2}});
  add({1, 2, 3, 4}, {2, 2, 2, 3}, first, {{}, {1, 2}, {2, -1}, {1, 2}, {2, 3}, {2, 1}});
  add({2, 4, 4, 3}, {6, 2, 2, 2}, first, same, 2);
  add({2, 3, 4, 4}, {4, 1, 2, 2}, {{0, 3, 1, 2}, {0, 1, 2, 3}, {0, 3, 1, 2}}, plain, 4);
  add({4, 3, 4, 3}, {6, 3, 2, 2}, first, same, 1, 2);
  add({2, 3, 7}, {2, 3, 3}, line, {{}, {2}, {1}, {0}, {1}, {2}});
  add({2, 3, 2}, {2, 3, 4}, line, {{}, {1}, {0}, {0}, {1}, {1}});
  add({2, 3}, {4, 3}, {{0, 1}, {0, 1}, {0, 1}}, {});
  return samples;
}

// --- Cost ----------------------------------------------------------------------------------------

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// The number of pairs of a result and a kernel element that read an element and not padding or a
// hole, along one axis. Result o and kernel element k read position o * stride + k *
// window_dilation - low of the dilated axis, where every base_dilation'th position is an element.
double pairs_along(const Windows& windows, int axis, std::int64_t size, std::int64_t count) {
  const auto at = [&](const Shape& list) { return list[axis].constant(); };
  const std::int64_t stride = at(windows.strides), holes = at(windows.base_dilation),
                     last = (size - 1) * holes, period = holes / std::gcd(stride, holes);
  double pairs = 0;
  for (std::int64_t k = 0; size > 0 && k < at(windows.window); ++k) {
    const std::int64_t place = k * at(windows.window_dilation) - at(windows.low);  // of result 0
    std::int64_t first = std::max<std::int64_t>(0, -floor_div(place, stride));
    const std::int64_t end = std::min(count - 1, floor_div(last - place, stride));
    std::int64_t steps = 0;
    while (steps < period && (first * stride + place) % holes != 0) ++first, ++steps;
    if (steps < period && first <= end) pairs += double((end - first) / period + 1);
  }
  return pairs;
}

double conv_flops(cost::Avals inputs, cost::Avals outputs, const Params& params) {
  const Conv conv(params, inputs[1].shape);
  const auto& [lhs, rhs, out] = conv.dimensions;
  const Shape &image = inputs[0].shape, &result = outputs[0].shape;
  double flops = cost::multiply_add(outputs[0].dtype) * value_of(result[out[0]]) *
                 value_of(result[out[1]]) * value_of(inputs[1].shape[rhs[1]]);
  for (std::size_t i = 2; i < out.size(); ++i)
    flops *=
        pairs_along(conv.windows, int(i - 2), image[lhs[i]].constant(), result[out[i]].constant());
  return flops;
}

// --- Spelling ------------------------------------------------------------------------------------

spelling::Text spell_conv(const EquationWriter& w) {
  const Shape &low = w.params().get<Shape>("padding_low"),
              &high = w.params().get<Shape>("padding_high");
  std::vector<std::string> padding;
  for (std::size_t i = 0; i < low.size(); ++i)
    padding.push_back(w.list({w.text(low[i]), w.text(high[i])}));
  const char* pairs = w.is_python() ? "" : "std::vector<std::pair<plait::Dim, plait::Dim>>";
  const char* specs = w.is_python() ? "" : "plait::lax::ConvDimensions";
  std::vector<std::string> arguments{
      w.operand(0),
      w.operand(1),
      w.dims("window_strides"),
      pairs + w.list(padding),
      w.dims("lhs_dilation"),
      w.dims("rhs_dilation"),
      specs + w.list({w.items("lhs_spec"), w.items("rhs_spec"), w.items("out_spec")}),
      w.dim("feature_group_count"),
      w.dim("batch_group_count")};
  spelling::add_dtype(w, arguments, "preferred_element_type");
  return w.call("conv_general_dilated", arguments);
}

}  // namespace

constinit const Primitive conv_p{"conv"};
static const auto conv_def =
    define(conv_p,
           "Convolution as neural networks mean it: each kernel of rhs is correlated with windows "
           "of lhs. Strides step windows, "
           "lhs_dilation and rhs_dilation put holes between elements, groups split features or "
           "examples. 16-bit floats "
           "accumulate in float32.")
        .operands(2)
        .rule<Abstract>(conv_abstract)
        .rule<Eval>(eval_conv)
        .rule<Emit>(emit_conv)
        .rule<Cost>(cost::arithmetic(conv_flops))
        .rule<Autocast>(Autocast::low)
        .rule<Spelling>(spell_conv)
        .rule<PictureGroup>(PictureGroup::product)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("loops seldom repeat it")
        .rule<Jvp>([](auto primals, auto tangents, auto outputs, const Params& params) -> Tangents {
          Tangent total(outputs[0].aval());
          if (!tangents[0].is_zero())
            total = Array(bind(conv_p, {tangents[0].array(), primals[1]}, params));
          if (!tangents[1].is_zero())
            total =
                add_tangents(total, Array(bind(conv_p, {primals[0], tangents[1].array()}, params)));
          return {total};
        })
        .rule<Transpose>([](auto cotangents, auto inputs, const Params& params) -> Tangents {
          const Conv conv(params, inputs[1].aval().shape);
          const Array& ct = cotangents[0].array();
          Tangents result{Tangent(inputs[0].aval()), Tangent(inputs[1].aval())};
          if (inputs[0].is_linear())
            result[0] = transpose_lhs(conv, ct, inputs[1].known(), inputs[0].aval());
          else
            result[1] = transpose_rhs(conv, ct, inputs[0].known(), inputs[1].aval());
          return result;
        })
        .rule<Batch>(conv_batch)
        .rule<Mask>(conv_mask)
        .rule<Samples>(conv_samples);

lax::ConvDimensions lax::conv_dimension_numbers(std::string_view lhs, std::string_view rhs,
                                                std::string_view out) {
  auto fail = [&](const std::string& why) {
    throw ValueError("conv: dimension_numbers ('" + std::string(lhs) + "', '" + std::string(rhs) +
                         "', '" + std::string(out) + "'): " + why,
                     "write for instance ('NCHW', 'OIHW', 'NCHW') or ('NHWC', 'HWIO', 'NHWC')");
  };
  std::string places;  // the spatial characters, in the order of rhs
  for (char c : rhs)
    if (c != 'O' && c != 'I') places += c;
  auto read = [&](std::string_view text, const char* which, char first, char second) {
    if (text.size() != rhs.size()) fail(std::string(which) + " has another length than rhs");
    std::vector<int> spec;
    for (char c : std::string{first, second} + places) {
      const std::size_t at = text.find(c);
      if (at == std::string_view::npos || text.find(c, at + 1) != std::string_view::npos)
        fail(std::string(which) + " does not have the dimension '" + c + "' once");
      spec.push_back(int(at));
    }
    return spec;
  };
  return {read(lhs, "lhs", 'N', 'C'), read(rhs, "rhs", 'O', 'I'), read(out, "out", 'N', 'C')};
}

Array lax::conv_general_dilated(Operand lhs, Operand rhs, const Shape& window_strides,
                                const WindowPadding& padding, const Shape& lhs_dilation,
                                const Shape& rhs_dilation, const ConvDimensions& dimension_numbers,
                                Dim feature_group_count, Dim batch_group_count,
                                std::optional<DType> preferred_element_type) {
  ConvDimensions dimensions = dimension_numbers;
  for (std::vector<int>* spec : {&dimensions.lhs_spec, &dimensions.rhs_spec, &dimensions.out_spec})
    if (spec->empty())
      for (int i = 0; i < lhs.ndim(); ++i) spec->push_back(i);
  check_dimensions(dimensions, lhs.aval(), rhs.aval());
  const int axes = lhs.ndim() - 2;
  Windows w{{}, or_ones(window_strides, axes), {},
            {}, or_ones(lhs_dilation, axes),   or_ones(rhs_dilation, axes)};
  Shape sizes;
  for (int i = 0; i < axes; ++i) {
    w.window.push_back(rhs.shape(dimensions.rhs_spec[i + 2]));
    sizes.push_back(lhs.shape(dimensions.lhs_spec[i + 2]));
  }
  resolve_padding("conv", padding, sizes, w);
  return bind(conv_p, {lhs, rhs},
              {{"window_strides", w.strides},
               {"padding_low", w.low},
               {"padding_high", w.high},
               {"lhs_dilation", w.base_dilation},
               {"rhs_dilation", w.window_dilation},
               {"lhs_spec", to_shape(dimensions.lhs_spec)},
               {"rhs_spec", to_shape(dimensions.rhs_spec)},
               {"out_spec", to_shape(dimensions.out_spec)},
               {"feature_group_count", feature_group_count},
               {"batch_group_count", batch_group_count},
               {"dtype", preferred_element_type.value_or(lhs.dtype())}});
}

}  // namespace plait
