// plait.nn: pooling over windows of the axes between batch and features. The mean is a composite,
// so that a backend may claim it; max and min are reduce_window.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/nn.h>

#include "functions/functions.h"
#include "primitives/reduction/window.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

// The windows of the spatial axes: one entry each.
Windows windows_over(std::string_view function, const Array& x, const Shape& window_shape,
                     const Shape& strides, const lax::WindowPadding& padding) {
  const int axes = window_shape.rank();
  if (x.ndim() < axes + 1)
    throw ShapeError(std::string(function) + ": a window " + indexing::text_of(window_shape) +
                         " needs as many axes before the features, and the array has shape " +
                         indexing::text_of(x.shape()),
                     "give an array (batch ..., spatial ..., features)");
  Windows windows{window_shape, or_ones(strides, axes), {}, {}, Shape(axes, 1), Shape(axes, 1)};
  Shape sizes;
  for (int i = 0; i < axes; ++i) sizes.push_back(x.shape(x.ndim() - 1 - axes + i));
  resolve_padding(function, padding, sizes, windows);
  check_windows(function, windows, axes, x.aval());
  return windows;
}

using Pairs = std::vector<std::pair<Dim, Dim>>;

// A list with an entry for every axis of x, which is neutral for batch and feature axes.
Shape for_all_axes(const Shape& entries, int rank, Dim nothing) {
  Shape all(rank, nothing);
  for (int i = 0; i < entries.rank(); ++i) all[rank - 1 - entries.rank() + i] = entries[i];
  return all;
}
template <class Reduce>
Array reduced(Reduce reduce, const Array& x, const Windows& windows) {
  const int rank = x.ndim();
  const Shape low = for_all_axes(windows.low, rank, 0), high = for_all_axes(windows.high, rank, 0);
  Pairs padding;
  for (int i = 0; i < rank; ++i) padding.emplace_back(low[i], high[i]);
  return reduce(x, for_all_axes(windows.window, rank, 1), for_all_axes(windows.strides, rank, 1),
                padding, Shape(), Shape());
}

Arrays avg_pool_body(std::span<const Array> inputs, const Params& attributes) {
  const Array x = size_of(inputs[0].dtype()) == 2 ? astype(inputs[0], DType::float32) : inputs[0];
  const Shape& window = attributes.get<Shape>("window");
  const Shape ones(window.rank(), 1);
  const Windows windows{window,
                        attributes.get<Shape>("strides"),
                        attributes.get<Shape>("padding_low"),
                        attributes.get<Shape>("padding_high"),
                        ones,
                        ones};
  const Array sum = reduced(lax::reduce_window_sum, x, windows);
  const Array count = attributes.flag("count_include_pad")
                          ? number_of(window.num_elements(), x.dtype())
                          : reduced(lax::reduce_window_sum, filled(1, x), windows);
  return {astype(lax::div(sum, count), inputs[0].dtype())};
}
const Composite& avg_pool_composite =
    define_composite({"avg_pool",
                      "The mean over windows of the axes before the last one; count_include_pad "
                      "says whether padding counts.",
                      avg_pool_body,
                      {}});

}  // namespace

Array nn::avg_pool(Operand inputs, const Shape& window_shape, const Shape& strides,
                   const lax::WindowPadding& padding, bool count_include_pad) {
  const Array x = to_inexact(inputs);
  const Windows windows = windows_over("avg_pool", x, window_shape, strides, padding);
  return composite(avg_pool_composite, {x},
                   {{"window", windows.window},
                    {"strides", windows.strides},
                    {"padding_low", windows.low},
                    {"padding_high", windows.high},
                    {"count_include_pad", count_include_pad}});
}
Array nn::max_pool(Operand inputs, const Shape& window_shape, const Shape& strides,
                   const lax::WindowPadding& padding) {
  return reduced(lax::reduce_window_max, inputs,
                 windows_over("max_pool", inputs, window_shape, strides, padding));
}
Array nn::min_pool(Operand inputs, const Shape& window_shape, const Shape& strides,
                   const lax::WindowPadding& padding) {
  return reduced(lax::reduce_window_min, inputs,
                 windows_over("min_pool", inputs, window_shape, strides, padding));
}

namespace {

Array avg_pool(Operand inputs, const Shape& window_shape, const std::optional<Shape>& strides,
               const functions::WindowPadding& padding, bool count_include_pad) {
  return nn::avg_pool(inputs, window_shape, strides.value_or(Shape()), padding, count_include_pad);
}
template <Array (*function)(Operand, const Shape&, const Shape&, const lax::WindowPadding&)>
Array extremum(Operand inputs, const Shape& window_shape, const std::optional<Shape>& strides,
               const functions::WindowPadding& padding) {
  return function(inputs, window_shape, strides.value_or(Shape()), padding);
}

[[maybe_unused]] const FunctionInfo* const pooling_functions[] = {
    function("nn",
             "avg_pool(inputs, window_shape, strides=None, padding='VALID', "
             "count_include_pad=True)",
             "Means over windows of the axes between batch and the last one, features, as Flax's. "
             "window_shape and strides (ones by default) have one entry for each; padding is "
             "'VALID', 'SAME' or pairs (low, high), and counts as zeros unless count_include_pad "
             "is false. Integers become the default float.",
             &avg_pool),
    function("nn", "max_pool(inputs, window_shape, strides=None, padding='VALID')",
             "Maxima over windows, as avg_pool; padding never counts, and NaN is kept.",
             &extremum<nn::max_pool>),
    function("nn", "min_pool(inputs, window_shape, strides=None, padding='VALID')",
             "Minima over windows, as avg_pool; padding never counts, and NaN is kept.",
             &extremum<nn::min_pool>),
};

}  // namespace
}  // namespace plait
