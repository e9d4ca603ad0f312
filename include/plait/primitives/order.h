// Sorting, windows, convolution and random bits in plait::lax: the second half of its functions.
// Included by primitives.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/indexing.h>

namespace plait {

// h_i = a_i h_(i-1) + b_i along an axis: the derivative of a cumulative product.
extern const Primitive recurrence_p;

namespace lax {

// The index of the largest or smallest element along an axis: the first of equal ones; NaN wins.
Array argmax(Operand operand, int axis, DType index_dtype = default_int);
Array argmin(Operand operand, int axis, DType index_dtype = default_int);

// Cumulative sums, products and extremes (NaN wins) along an axis, from its end when reverse.
Array cumsum(Operand operand, int axis = 0, bool reverse = false);
Array cumprod(Operand operand, int axis = 0, bool reverse = false);
Array cummax(Operand operand, int axis = 0, bool reverse = false);
Array cummin(Operand operand, int axis = 0, bool reverse = false);
// h_i = a_i h_(i-1) + b_i with h_0 = b_0; from the end of the axis when reverse.
Array linear_recurrence(Operand a, Operand b, int axis = 0, bool reverse = false);

// Sorts along a dimension. NaN is greater than every number, -0.0 equals 0.0, complex numbers are
// ordered as pairs. Several operands move together, ordered by the first num_keys of them.
Array sort(Operand operand, int dimension = -1, bool is_stable = true, bool descending = false);
Arrays sort(Operands operands, int dimension = -1, bool is_stable = true, int num_keys = 1,
            bool descending = false);
// The k largest along an axis, largest first, and their indices (int32); of equal ones the first.
std::pair<Array, Array> top_k(Operand operand, Dim k, int axis = -1);

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

// Random bits of a key (uint32[2], or any array of keys uint32[..., 2]): unsigned integers of
// bit_width 8, 16, 32 or 64 and the given shape, behind the shape of the keys.
Array random_bits(Operand key, const Shape& shape, int bit_width = 32);
// A key from a key and uint32 data; leading shapes are equal, or there is one key or one datum.
Array random_fold(Operand key, Operand data);
// New keys of the given shape from one key, as jax.random.split gives.
Array random_split(Operand key, const Shape& shape = {2});

}  // namespace lax
}  // namespace plait
