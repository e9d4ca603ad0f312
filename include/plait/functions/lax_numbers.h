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
std::pair<Array, Array> approx_max_k(Operand operand, Dim k, int reduction_dimension = -1);
std::pair<Array, Array> approx_min_k(Operand operand, Dim k, int reduction_dimension = -1);

}  // namespace plait::lax
