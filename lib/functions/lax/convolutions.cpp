// plait.lax: transposed convolutions, windows as features, products of groups. See lax_numbers.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/lax_numbers.h>

#include "functions/lax/arguments.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

std::vector<int> spatial_of(const std::vector<int>& spec) { return {spec.begin() + 2, spec.end()}; }
Shape or_ones(const Shape& sizes, std::size_t count) {
  return sizes.empty() ? Shape(count, 1) : sizes;
}
std::vector<int> first_axes(int rank) {
  std::vector<int> axes(rank);
  for (int i = 0; i < rank; ++i) axes[i] = i;
  return axes;
}

// How much a transposed convolution pads, so that its result has the size of what a convolution of
// stride s and kernel size k reads: of n s elements ("SAME"), or of all that it could ("VALID").
std::pair<Dim, Dim> transposed_padding(Dim k, Dim s, const std::string& word) {
  if (word != "SAME" && word != "VALID")
    throw ValueError("conv_transpose: padding is '" + word + "'",
                     "choose 'SAME' or 'VALID', or give pairs");
  if (word == "VALID") return {k - 1, s - 1 + maximum(k - s, 0)};
  const Dim total = k + s - 2;
  const bool is_long = less_equal(k, s) == false;
  const Dim before = is_long ? floor_divide(total + 1, 2) : k - 1;
  return {before, total - before};
}

}  // namespace

Array lax::conv_with_general_padding(Operand lhs, Operand rhs, const Shape& window_strides,
                                     const WindowPadding& padding, const Shape& lhs_dilation,
                                     const Shape& rhs_dilation,
                                     std::optional<DType> preferred_element_type) {
  return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, {}, 1,
                              1, preferred_element_type);
}

Array lax::conv_transpose(Operand lhs, Operand rhs, const Shape& strides,
                          const WindowPadding& padding, const Shape& rhs_dilation,
                          const ConvDimensions& dimension_numbers, bool transpose_kernel,
                          std::optional<DType> preferred_element_type,
                          bool use_consistent_padding) {
  const int rank = lhs.ndim();
  if (rhs.ndim() != rank || rank < 2 || int(strides.size()) != rank - 2)
    throw ShapeError("conv_transpose: operands of shapes (" + lhs.shape().to_string() + ") and (" +
                         rhs.shape().to_string() + ") with " + std::to_string(strides.size()) +
                         " strides",
                     "give as many axes of both, and a stride for each spatial one");
  ConvDimensions dims = dimension_numbers;
  if (dims.lhs_spec.empty()) {
    dims.lhs_spec = {0, rank - 1};
    dims.rhs_spec = {rank - 1, rank - 2};
    for (int i = 0; i < rank - 2; ++i) {
      dims.lhs_spec.push_back(i + 1);
      dims.rhs_spec.push_back(i);
    }
    dims.out_spec = dims.lhs_spec;
  }
  const std::vector<int> spatial = spatial_of(dims.rhs_spec);
  const Shape dilation = or_ones(rhs_dilation, spatial.size());
  WindowPadding pads = padding;
  if (!padding.name.empty() || use_consistent_padding) {
    if (padding.name.empty() && padding.pairs.size() != spatial.size())
      throw ShapeError("conv_transpose: " + std::to_string(padding.pairs.size()) +
                           " pairs of padding for " + std::to_string(spatial.size()) +
                           " spatial axes",
                       "give a pair for each");
    pads = WindowPadding(std::vector<std::pair<Dim, Dim>>{});
    for (std::size_t i = 0; i < spatial.size(); ++i) {
      const Dim size = (rhs.shape(spatial[i]) - 1) * dilation[i] + 1;
      if (!padding.name.empty()) {
        pads.pairs.push_back(transposed_padding(size, strides[i], padding.name));
        continue;
      }
      // What the convolution pads is no part of the transposed one's result.
      const auto [low, high] = transposed_padding(size, strides[i], "VALID");
      pads.pairs.emplace_back(low - padding.pairs[i].first, high - padding.pairs[i].second);
    }
  }
  Array kernel = rhs;
  if (transpose_kernel) {
    kernel = rev(kernel, spatial);
    std::swap(dims.rhs_spec[0], dims.rhs_spec[1]);
  }
  return conv_general_dilated(lhs, kernel, Shape(spatial.size(), 1), pads, strides, dilation, dims,
                              1, 1, preferred_element_type);
}

Array lax::conv_general_dilated_patches(Operand lhs, const Shape& filter_shape,
                                        const Shape& window_strides, const WindowPadding& padding,
                                        const Shape& lhs_dilation, const Shape& rhs_dilation,
                                        const ConvDimensions& dimension_numbers,
                                        std::optional<DType> preferred_element_type) {
  const int rank = lhs.ndim();
  if (int(filter_shape.size()) != rank - 2)
    throw ShapeError("conv_general_dilated_patches: a filter of " +
                         std::to_string(filter_shape.size()) + " sizes for an array of " +
                         std::to_string(rank) + " axes",
                     "give a size for each spatial axis");
  ConvDimensions dims = dimension_numbers;
  if (dims.lhs_spec.empty()) dims.lhs_spec = dims.out_spec = first_axes(rank);
  dims.rhs_spec = first_axes(rank);  // of the kernel made here
  // Output feature p of a channel reads element p of its window.
  const Dim size = filter_shape.num_elements(), channels = lhs.shape(dims.lhs_spec[1]);
  Shape one{size, 1};
  for (Dim dim : filter_shape) one.push_back(dim);
  const Array picks = reshape(numpy::eye(size, {}, 0, lhs.dtype()), one);
  Shape reps(rank, 1);
  reps[0] = channels;
  return conv_general_dilated(lhs, numpy::tile(picks, reps), window_strides, padding, lhs_dilation,
                              rhs_dilation, dims, channels, 1, preferred_element_type);
}

Array lax::conv_general_dilated_local(Operand lhs, Operand rhs, const Shape& window_strides,
                                      const WindowPadding& padding, const Shape& filter_shape,
                                      const Shape& lhs_dilation, const Shape& rhs_dilation,
                                      const ConvDimensions& dimension_numbers) {
  const int rank = lhs.ndim();
  ConvDimensions dims = dimension_numbers;
  if (dims.lhs_spec.empty()) dims.lhs_spec = dims.rhs_spec = dims.out_spec = first_axes(rank);
  const std::vector<int> out_spec = std::exchange(dims.out_spec, first_axes(rank));
  const Array patches = conv_general_dilated_patches(lhs, filter_shape, window_strides, padding,
                                                     lhs_dilation, rhs_dilation, dims);
  // At every place a product of its own: (spatial ..., batch, feature).
  const Array product = dot_general(
      patches, rhs,
      {{1}, {dims.rhs_spec[1]}, spatial_of(first_axes(rank)), spatial_of(dims.rhs_spec)});
  std::vector<int> order(rank);
  for (int i = 0; i < rank - 2; ++i) order[out_spec[i + 2]] = i;
  order[out_spec[0]] = rank - 2;
  order[out_spec[1]] = rank - 1;
  return transpose(product, order);
}

std::pair<Array, Array> lax::approx_max_k(Operand operand, Dim k, int reduction_dimension) {
  return top_k(operand, k, reduction_dimension);
}
std::pair<Array, Array> lax::approx_min_k(Operand operand, Dim k, int reduction_dimension) {
  const auto [values, indices] = top_k(neg(operand), k, reduction_dimension);
  return {neg(values), indices};
}

namespace {

Array conv_with_general_padding_of(Operand lhs, Operand rhs, const Shape& window_strides,
                                   const functions::WindowPadding& padding,
                                   const std::optional<Shape>& lhs_dilation,
                                   const std::optional<Shape>& rhs_dilation,
                                   std::optional<DType> preferred_element_type) {
  return lax::conv_with_general_padding(lhs, rhs, window_strides, padding,
                                        shape_or_empty(lhs_dilation), shape_or_empty(rhs_dilation),
                                        preferred_element_type);
}
Array conv_transpose_of(Operand lhs, Operand rhs, const Shape& strides,
                        const functions::WindowPadding& padding,
                        const std::optional<Shape>& rhs_dilation, const Argument& dimension_numbers,
                        bool transpose_kernel, std::optional<DType> preferred_element_type,
                        bool use_consistent_padding) {
  return lax::conv_transpose(lhs, rhs, strides, padding, shape_or_empty(rhs_dilation),
                             conv_dimensions_of(dimension_numbers, "conv_transpose"),
                             transpose_kernel, preferred_element_type, use_consistent_padding);
}
Array patches_of(Operand lhs, const Shape& filter_shape, const Shape& window_strides,
                 const functions::WindowPadding& padding, const std::optional<Shape>& lhs_dilation,
                 const std::optional<Shape>& rhs_dilation, const Argument& dimension_numbers,
                 std::optional<DType> preferred_element_type) {
  return lax::conv_general_dilated_patches(
      lhs, filter_shape, window_strides, padding, shape_or_empty(lhs_dilation),
      shape_or_empty(rhs_dilation),
      conv_dimensions_of(dimension_numbers, "conv_general_dilated_patches"),
      preferred_element_type);
}
Array local_of(Operand lhs, Operand rhs, const Shape& window_strides,
               const functions::WindowPadding& padding, const Shape& filter_shape,
               const std::optional<Shape>& lhs_dilation, const std::optional<Shape>& rhs_dilation,
               const Argument& dimension_numbers) {
  return lax::conv_general_dilated_local(
      lhs, rhs, window_strides, padding, filter_shape, shape_or_empty(lhs_dilation),
      shape_or_empty(rhs_dilation),
      conv_dimensions_of(dimension_numbers, "conv_general_dilated_local"));
}

[[maybe_unused]] const FunctionInfo* const convolution_catalogue[] = {
    function("lax",
             "conv_with_general_padding(lhs, rhs, window_strides, padding, lhs_dilation=None, "
             "rhs_dilation=None, precision=None!, preferred_element_type=None)",
             "conv_general_dilated in NCHW and OIHW.", &conv_with_general_padding_of),
    function(
        "lax",
        "conv_transpose(lhs, rhs, strides, padding, rhs_dilation=None, "
        "dimension_numbers=None, transpose_kernel=False, precision=None!, "
        "preferred_element_type=None, use_consistent_padding=False)",
        "The transpose of a convolution with these strides, whose inputs have strides - 1 "
        "holes between them. padding: 'SAME' (strides times the size), 'VALID' or pairs, which "
        "are what the inputs with holes are padded with, or, with use_consistent_padding, what "
        "the convolution pads. "
        "transpose_kernel: with the kernel flipped and its features exchanged, as in the "
        "gradient of a convolution. By default channels are last: NHWC, HWIO.",
        &conv_transpose_of),
    function("lax",
             "conv_general_dilated_patches(lhs, filter_shape, window_strides, padding, "
             "lhs_dilation=None, rhs_dilation=None, dimension_numbers=None, precision=None!, "
             "preferred_element_type=None)",
             "The windows of this shape that a convolution reads, as features: the elements of "
             "each input feature's window in row-major order, one input feature after the other.",
             &patches_of),
    function("lax",
             "conv_general_dilated_local(lhs, rhs, window_strides, padding, filter_shape, "
             "lhs_dilation=None, rhs_dilation=None, dimension_numbers=None, precision=None!)",
             "A convolution with a kernel of its own at each place: rhs has the places of the "
             "result as spatial axes, and as input features those of "
             "conv_general_dilated_patches.",
             &local_of),
    function("lax",
             "approx_max_k(operand, k, reduction_dimension=-1, recall_target=0.95!, "
             "reduction_input_size_override=-1!, aggregate_to_topk=True!)",
             "(values, indices) of the k largest along an axis; here they are exact.",
             &lax::approx_max_k),
    function("lax",
             "approx_min_k(operand, k, reduction_dimension=-1, recall_target=0.95!, "
             "reduction_input_size_override=-1!, aggregate_to_topk=True!)",
             "(values, indices) of the k smallest along an axis; here they are exact.",
             &lax::approx_min_k),
};

}  // namespace
}  // namespace plait
