// plait.lax: transposed convolutions, windows as features, repeated and joined arrays. See
// lax_numbers.h.
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
                          std::optional<DType> preferred_element_type) {
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
  if (!padding.name.empty()) {
    pads = WindowPadding(std::vector<std::pair<Dim, Dim>>{});
    for (std::size_t i = 0; i < spatial.size(); ++i)
      pads.pairs.push_back(transposed_padding((rhs.shape(spatial[i]) - 1) * dilation[i] + 1,
                                              strides[i], padding.name));
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

// --- Shapes --------------------------------------------------------------------------------------

Array lax::broadcast_to_rank(Operand x, int rank) {
  if (rank < x.ndim())
    throw ValueError("broadcast_to_rank: an array of " + std::to_string(x.ndim()) + " axes to " +
                         std::to_string(rank),
                     "give at least as many");
  Shape shape(rank - x.ndim(), 1);
  for (Dim dim : x.shape()) shape.push_back(dim);
  return reshape(x, shape);
}
Array lax::broadcast_like(Operand arr, Operand like_arr) {
  return plait::broadcast_to(arr, like_arr.shape());
}
Array lax::empty(const Shape& shape, DType dtype) { return numpy::zeros(shape, dtype); }
Array lax::tile(Operand operand, const Shape& reps) {
  if (int(reps.size()) != operand.ndim())
    throw ShapeError("tile: " + std::to_string(reps.size()) + " repetitions of an array of " +
                         std::to_string(operand.ndim()) + " axes",
                     "give one for each axis");
  return numpy::tile(operand, reps);
}
Array lax::stack(Operands operands, int axis) { return numpy::stack(operands, axis); }
std::vector<Array> lax::unstack(Operand x, int axis) { return numpy::unstack(x, axis); }

Array lax::index_take(Operand src, Operands idxs, const std::vector<int>& axes) {
  if (idxs.empty() || idxs.size() != axes.size())
    throw ValueError("index_take: " + std::to_string(idxs.size()) + " index arrays for " +
                         std::to_string(axes.size()) + " axes",
                     "give one for each axis");
  IndexDimensions dims;
  Shape window = src.shape();
  for (int axis : axes) {
    dims.axes.push_back(normalize_axis(axis, src.ndim(), "index_take"));
    window[dims.axes.back()] = 1;
  }
  dims.collapse = dims.axes;
  std::sort(dims.collapse.begin(), dims.collapse.end());
  const Array rows = numpy::stack(idxs, -1);
  return gather(src, rows, dims, window, GatherScatterMode::clip);
}

Array lax::scatter_sub(Operand operand, Operand scatter_indices, Operand updates,
                       const ScatterDimensionNumbers& dimension_numbers,
                       const ScatterOptions& options) {
  return scatter_add(operand, scatter_indices, neg(updates), dimension_numbers, options);
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
                        bool transpose_kernel, std::optional<DType> preferred_element_type) {
  return lax::conv_transpose(lhs, rhs, strides, padding, shape_or_empty(rhs_dilation),
                             conv_dimensions_of(dimension_numbers, "conv_transpose"),
                             transpose_kernel, preferred_element_type);
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
Array scatter_sub_of(Operand operand, Operand scatter_indices, Operand updates,
                     const Argument& dimension_numbers, bool indices_are_sorted,
                     bool unique_indices, const std::optional<std::string>& mode) {
  return lax::scatter_sub(operand, scatter_indices, updates,
                          scatter_dimensions_of(dimension_numbers),
                          {mode_of(mode, "scatter_sub"), unique_indices, indices_are_sorted});
}

[[maybe_unused]] const FunctionInfo* const convolution_catalogue[] = {
    function("lax",
             "conv_with_general_padding(lhs, rhs, window_strides, padding, lhs_dilation=None, "
             "rhs_dilation=None, precision=None!, preferred_element_type=None)",
             "conv_general_dilated in NCHW and OIHW.", &conv_with_general_padding_of),
    function("lax",
             "conv_transpose(lhs, rhs, strides, padding, rhs_dilation=None, "
             "dimension_numbers=None, transpose_kernel=False, precision=None!, "
             "preferred_element_type=None)",
             "The transpose of a convolution with these strides, whose inputs have strides - 1 "
             "holes between them. padding: 'SAME' (strides times the size), 'VALID' or pairs. "
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
    function("lax", "broadcast_to_rank(x, rank)", "x with axes of size 1 in front, rank in all.",
             &lax::broadcast_to_rank),
    function("lax", "broadcast_like(arr, like_arr)", "arr broadcast to the shape of another array.",
             &lax::broadcast_like),
    function("lax", "empty(shape, dtype)", "zeros of a shape and dtype.", &lax::empty),
    function("lax", "tile(operand, reps)", "operand repeated so often along each axis.",
             &lax::tile),
    function("lax", "stack(operands, axis=0)", "Arrays of one shape along a new axis.",
             &lax::stack),
    function("lax", "unstack(x, axis=0)", "The rows of x along an axis, without that axis.",
             &lax::unstack),
    function("lax", "index_take(src, idxs, axes)",
             "src at idxs[i] along axes[i]; the axes of the indices come first. Indices outside "
             "take the nearest element.",
             &lax::index_take),
    function("lax",
             "scatter_sub(operand, scatter_indices, updates, dimension_numbers, *, "
             "indices_are_sorted=False, unique_indices=False, mode=None)",
             "scatter that subtracts updates from the elements; places that are named twice lose "
             "both.",
             &scatter_sub_of),
};

}  // namespace
}  // namespace plait
