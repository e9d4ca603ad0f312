// The functions of plait::lax on the bits of numbers, and those that repeat and join arrays, under
// JAX's names. Part of lax.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/lax.h>

namespace plait::lax {

// --- Bits ----------------------------------------------------------------------------------------

Array population_count(Operand x);  // how many bits are set, in x's dtype
Array clz(Operand x);               // how many bits above the highest one that is set
Array mulhi(Operand x, Operand y);  // the upper half of the product of integers
Array nextafter(Operand x1, Operand x2);
// x rounded to a float of so many bits, half to even; what is too large becomes infinite, what is
// too small 0. Its derivative is that of x, and 0 where it overflows or underflows.
Array reduce_precision(Operand operand, int exponent_bits, int mantissa_bits);
Array reduce_xor(Operand operand, const std::vector<int>& axes);

// Halves, where two whole numbers are equally near. round(x) of primitives.h takes the even one.
enum class RoundingMethod { away_from_zero, to_nearest_even };
Array round(Operand x, RoundingMethod rounding_method);

// A new key and random bits of a dtype without sign, for a key that is not typed: uint32[4] or
// uint64[2], the words of a key and a counter, which goes up by the number of elements.
std::pair<Array, Array> rng_bit_generator(Operand key, const Shape& shape,
                                          DType dtype = DType::uint32);

// --- Shapes --------------------------------------------------------------------------------------

Array broadcast_to_rank(Operand x, int rank);
Array broadcast_like(Operand arr, Operand like_arr);
Array empty(const Shape& shape, DType dtype);  // zeros
Array tile(Operand operand, const Shape& reps);
Array stack(Operands operands, int axis = 0);
std::vector<Array> unstack(Operand x, int axis = 0);
// src at indices idxs[i] along axes[i], which the axes of the indices replace, in front.
Array index_take(Operand src, Operands idxs, const std::vector<int>& axes);
Array scatter_sub(Operand operand, Operand scatter_indices, Operand updates,
                  const ScatterDimensionNumbers& dimension_numbers,
                  const ScatterOptions& options = {});
// operand with func, a function of a scalar, of its elements in the windows of a scatter whose
// updates would have this shape: as often as windows name an element.
Array scatter_apply(Operand operand, Operand scatter_indices, const Function& func,
                    const ScatterDimensionNumbers& dimension_numbers, const Shape& update_shape,
                    const ScatterOptions& options = {});

// The arrays as they are, behind a wall that merging and reordering of equations do not pass.
Arrays optimization_barrier(Operands operand);

// --- Convolutions --------------------------------------------------------------------------------

Array conv_with_general_padding(Operand lhs, Operand rhs, const Shape& window_strides,
                                const WindowPadding& padding, const Shape& lhs_dilation = {},
                                const Shape& rhs_dilation = {},
                                std::optional<DType> preferred_element_type = {});
// The transpose of a strided convolution. transpose_kernel flips the kernel and exchanges its
// features, as the gradient of a convolution does. Axes are (batch, spatial ..., feature) and
// (spatial ..., in, out) by default.
Array conv_transpose(Operand lhs, Operand rhs, const Shape& strides, const WindowPadding& padding,
                     const Shape& rhs_dilation = {}, const ConvDimensions& dimension_numbers = {},
                     bool transpose_kernel = false,
                     std::optional<DType> preferred_element_type = {},
                     bool use_consistent_padding = false);
// The windows that a convolution with a kernel of this shape reads, as features: those of one
// feature of lhs beside each other.
Array conv_general_dilated_patches(Operand lhs, const Shape& filter_shape,
                                   const Shape& window_strides, const WindowPadding& padding,
                                   const Shape& lhs_dilation = {}, const Shape& rhs_dilation = {},
                                   const ConvDimensions& dimension_numbers = {},
                                   std::optional<DType> preferred_element_type = {});

// A kernel of its own at each place of the result, whose spatial axes rhs has. Its input features
// are those of conv_general_dilated_patches.
Array conv_general_dilated_local(Operand lhs, Operand rhs, const Shape& window_strides,
                                 const WindowPadding& padding, const Shape& filter_shape,
                                 const Shape& lhs_dilation = {}, const Shape& rhs_dilation = {},
                                 const ConvDimensions& dimension_numbers = {});

// --- Products and order --------------------------------------------------------------------------

// The rows of lhs in groups of these sizes, each multiplied with a matrix of rhs.
Array ragged_dot(Operand lhs, Operand rhs, Operand group_sizes,
                 std::optional<DType> preferred_element_type = {});
// dot_general where one axis of lhs is ragged: group_sizes says how many of its places, one group
// after the other, belong to each group. group_sizes has the groups as its last axis and, before
// it, none or the batch axes of lhs and those of the ragged axis's kind that come before it.
struct RaggedDotDimensions {
  DotDimensions dot;
  int lhs_ragged = 0;
  std::optional<int> rhs_group = {};  // where the ragged axis is of lhs alone
};
// The ragged axis is of lhs alone: each place meets the matrix of its group along rhs_group, and
// places beyond the groups give 0. It is contracted: one sum for each group, along a first axis of
// the result. It is a batch axis: dot_general, and places beyond the groups give 0.
Array ragged_dot_general(Operand lhs, Operand rhs, Operand group_sizes,
                         const RaggedDotDimensions& dimensions,
                         std::optional<DType> preferred_element_type = {});
std::pair<Array, Array> approx_max_k(Operand operand, Dim k, int reduction_dimension = -1);
std::pair<Array, Array> approx_min_k(Operand operand, Dim k, int reduction_dimension = -1);

}  // namespace plait::lax
