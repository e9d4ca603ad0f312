// Reductions over windows and convolution in plait::lax. Included by primitives.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/indexing.h>

namespace plait {
namespace lax {

// Padding before and after each windowed axis: pairs of sizes (negative ones crop), or "VALID"
// (none), "SAME" (as many windows as strides fit; an odd rest goes after), "SAME_LOWER" (an odd
// rest goes before).
struct WindowPadding {
  std::vector<std::pair<Dim, Dim>> pairs;
  std::string name;
  WindowPadding(std::initializer_list<std::pair<Dim, Dim>> list) : pairs(list) {}   // NOLINT
  WindowPadding(std::vector<std::pair<Dim, Dim>> list) : pairs(std::move(list)) {}  // NOLINT
  WindowPadding(const char* word) : name(word) {}                                   // NOLINT
  WindowPadding(std::string word) : name(std::move(word)) {}                        // NOLINT
};

// Reductions over windows, one entry of each list per dimension of the operand; an empty list of
// strides or dilations is all ones. base_dilation puts holes between the operand's elements,
// window_dilation between the window's. Padding and holes never count.
Array reduce_window_sum(Operand operand, const Shape& window_dimensions,
                        const Shape& window_strides = {}, const WindowPadding& padding = "VALID",
                        const Shape& base_dilation = {}, const Shape& window_dilation = {});
Array reduce_window_prod(Operand operand, const Shape& window_dimensions,
                         const Shape& window_strides = {}, const WindowPadding& padding = "VALID",
                         const Shape& base_dilation = {}, const Shape& window_dilation = {});
Array reduce_window_max(Operand operand, const Shape& window_dimensions,
                        const Shape& window_strides = {}, const WindowPadding& padding = "VALID",
                        const Shape& base_dilation = {}, const Shape& window_dilation = {});
Array reduce_window_min(Operand operand, const Shape& window_dimensions,
                        const Shape& window_strides = {}, const WindowPadding& padding = "VALID",
                        const Shape& base_dilation = {}, const Shape& window_dilation = {});

// The positions of the dimensions of a convolution's operands and result, as in JAX: lhs and out
// (batch, feature, spatial ...), rhs (out feature, in feature, spatial ...). Empty: in this order.
struct ConvDimensions {
  std::vector<int> lhs_spec, rhs_spec, out_spec;
};
// Reads ("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC"), ...: N batch, C feature, O and I the
// kernel's features, any other characters the spatial dimensions. ValueError otherwise.
ConvDimensions conv_dimension_numbers(std::string_view lhs, std::string_view rhs,
                                      std::string_view out);

// Convolution in the sense of neural networks: the cross-correlation of lhs with the kernel rhs.
// Strides and dilations have one entry per spatial dimension; an empty list means ones. With
// feature_group_count g, the features of lhs split into g groups with kernels of their own; with
// batch_group_count, the batch does.
Array conv_general_dilated(Operand lhs, Operand rhs, const Shape& window_strides = {},
                           const WindowPadding& padding = "VALID", const Shape& lhs_dilation = {},
                           const Shape& rhs_dilation = {},
                           const ConvDimensions& dimension_numbers = {},
                           Dim feature_group_count = 1, Dim batch_group_count = 1,
                           std::optional<DType> preferred_element_type = {});

}  // namespace lax
}  // namespace plait
