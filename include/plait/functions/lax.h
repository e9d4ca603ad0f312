// The functions of plait::lax that are made of several primitives, under JAX's names. primitives.h
// has those that are one primitive.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/arguments.h>
#include <plait/primitives/primitives.h>

namespace plait::lax {

Array square(Operand x);
Array reciprocal(Operand x);
Array rsqrt(Operand x);
Array sign(Operand x);
Array is_finite(Operand x);
Array exp2(Operand x);
Array cbrt(Operand x);
Array conj(Operand x);
Array logistic(Operand x);
Array tan(Operand x);
Array asin(Operand x);
Array acos(Operand x);
Array atan(Operand x);
Array sinh(Operand x);
Array cosh(Operand x);
Array asinh(Operand x);
Array acosh(Operand x);
Array atanh(Operand x);
// x between min and max, each a scalar or of x's shape.
Array clamp(Operand min, Operand x, Operand max);
// cases[which], element by element; which is a bool or int32 array.
Array select_n(Operand which, Operands cases);

Shape broadcast_shapes(const std::vector<Shape>& shapes);
Array broadcast(Operand operand, const Shape& sizes);
Array expand_dims(Operand array, const std::vector<int>& dimensions);
Array squeeze(Operand array, const std::vector<int>& dimensions);
Array collapse(Operand operand, int start_dimension, std::optional<int> stop_dimension = {});
Array broadcasted_iota(DType dtype, const Shape& shape, int dimension);
Array iota(DType dtype, Dim size);
Array full_like(Operand x, Operand fill_value, std::optional<DType> dtype = {},
                const std::optional<Shape>& shape = {});

Array dot(Operand lhs, Operand rhs, std::optional<DType> preferred_element_type = {});
Array batch_matmul(Operand lhs, Operand rhs);
// log of running sums of exponentials, without overflow.
Array cumlogsumexp(Operand operand, int axis = 0, bool reverse = false);
// keys in sorted order, and values in the order of their keys.
std::pair<Array, Array> sort_key_val(Operand keys, Operand values, int dimension = -1,
                                     bool is_stable = true);
// Folds with an associative function of two scalars. add, mul, max, min, bitwise_and and bitwise_or
// are recognised by their trace; others are applied to neighbours, log2(n) times. dimensions are
// axes. Of n operands of one shape at once, computation takes n elements and n more, and gives n.
Array reduce(Operand operand, Operand init_value, const BinaryFunction& computation,
             const std::vector<int>& dimensions);
Arrays reduce(Operands operands, Operands init_values, const Function& computation,
              const std::vector<int>& dimensions);
// Padding and the holes of base_dilation hold the initial value.
Array reduce_window(Operand operand, Operand init_value, const BinaryFunction& computation,
                    const Shape& window_dimensions, const Shape& window_strides = {},
                    const WindowPadding& padding = "VALID", const Shape& base_dilation = {},
                    const Shape& window_dilation = {});
Arrays reduce_window(Operands operands, Operands init_values, const Function& computation,
                     const Shape& window_dimensions, const Shape& window_strides = {},
                     const WindowPadding& padding = "VALID", const Shape& base_dilation = {},
                     const Shape& window_dilation = {});
Array conv(Operand lhs, Operand rhs, const Shape& window_strides, const WindowPadding& padding,
           std::optional<DType> preferred_element_type = {});

}  // namespace plait::lax
