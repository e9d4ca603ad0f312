// The catalogue of primitives: one line each, defined by one block in lib/primitives. plait::lax
// has them as functions under JAX's names, with exact dtypes and shapes: no promotion, and
// broadcasting of scalars only. The arithmetic operators of Array are NumPy's (functions/numpy.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

namespace plait {

// elementwise, one operand
extern const Primitive neg_p, abs_p, floor_p, ceil_p, round_p, exp_p, expm1_p, log_p, log1p_p,
    sqrt_p, sin_p, cos_p, tanh_p, erf_p, erf_inv_p, lgamma_p, digamma_p, not_p, real_p, imag_p,
    integer_pow_p, cast_p, bitcast_p;
// elementwise, two or three operands
extern const Primitive add_p, sub_p, mul_p, div_p, rem_p, pow_p, max_p, min_p, atan2_p, complex_p,
    and_p, or_p, xor_p, shift_p, cmp_p, select_p;
// movement
extern const Primitive reshape_p, transpose_p, broadcast_in_dim_p, slice_p, pad_p, concatenate_p,
    split_p, rev_p, iota_p, empty_stack_p, dynamic_slice_p, dynamic_update_slice_p, gather_p,
    scatter_p;
// reductions and order
extern const Primitive reduce_p, argreduce_p, cumreduce_p, reduce_window_p, sort_p, top_k_p;
// contraction
extern const Primitive dot_general_p, conv_p;
// random
extern const Primitive random_bits_p, random_fold_p;
// structure
extern const Primitive check_sizes_p, stop_gradient_p, tag_p, barrier_p, device_put_p,
    dim_as_value_p;

namespace lax {

Array neg(Operand x);
Array abs(Operand x);  // of complex: the magnitude, real
Array floor(Operand x);
Array ceil(Operand x);
Array round(Operand x);  // half to even
Array exp(Operand x);
Array expm1(Operand x);
Array log(Operand x);
Array log1p(Operand x);
Array sqrt(Operand x);
Array sin(Operand x);
Array cos(Operand x);
Array tanh(Operand x);
Array erf(Operand x);
Array erf_inv(Operand x);
Array lgamma(Operand x);
Array digamma(Operand x);
Array bitwise_not(Operand x);  // of bool: logical not
Array real(Operand x);
Array imag(Operand x);
Array integer_pow(Operand x, std::int64_t y);
Array convert_element_type(Operand operand, DType new_dtype, bool weak = false);
Array bitcast_convert_type(Operand operand, DType new_dtype);

Array add(Operand x, Operand y);
Array sub(Operand x, Operand y);
Array mul(Operand x, Operand y);
Array div(Operand x, Operand y);  // of integers: rounds to zero; x / 0 = 0
Array rem(Operand x, Operand y);  // sign of x, as C's fmod
Array pow(Operand x, Operand y);
Array max(Operand x, Operand y);  // NaN wins
Array min(Operand x, Operand y);
Array atan2(Operand x, Operand y);
Array complex(Operand x, Operand y);
Array bitwise_and(Operand x, Operand y);
Array bitwise_or(Operand x, Operand y);
Array bitwise_xor(Operand x, Operand y);
Array shift_left(Operand x, Operand y);
Array shift_right_arithmetic(Operand x, Operand y);
Array shift_right_logical(Operand x, Operand y);
Array eq(Operand x, Operand y);
Array ne(Operand x, Operand y);
Array lt(Operand x, Operand y);
Array le(Operand x, Operand y);
Array gt(Operand x, Operand y);
Array ge(Operand x, Operand y);
Array select(Operand pred, Operand on_true, Operand on_false);

Array reshape(Operand operand, const Shape& new_sizes);
Array transpose(Operand operand, std::span<const int> permutation);
// operand's axis i becomes axis broadcast_dimensions[i] of shape.
Array broadcast_in_dim(Operand operand, const Shape& shape,
                       std::span<const int> broadcast_dimensions);

Array reduce_sum(Operand operand, std::span<const int> axes);
Array reduce_prod(Operand operand, std::span<const int> axes);
Array reduce_max(Operand operand, std::span<const int> axes);
Array reduce_min(Operand operand, std::span<const int> axes);
Array reduce_and(Operand operand, std::span<const int> axes);
Array reduce_or(Operand operand, std::span<const int> axes);

// Dimensions to contract and to batch over, as in JAX.
struct DotDimensions {
  std::vector<int> lhs_contract, rhs_contract, lhs_batch, rhs_batch;
};
Array dot_general(Operand lhs, Operand rhs, const DotDimensions& dimensions,
                  std::optional<DType> preferred_element_type = {});

Array iota(DType dtype, const Shape& shape, int dimension);
// A scalar literal, broadcast.
Array full(const Shape& shape, double value, DType dtype);
Array zeros_like(const Aval& aval);
Array stop_gradient(Operand x);
// The size of an axis as a number: an int32 scalar when the size is named, else a literal.
Array dim_as_value(Dim dim);

}  // namespace lax

// x on a device, where it stays: an operation on arrays of two devices is an error. Its cotangent
// goes back. BackendError in a program that is compiled for another device.
Array device_put(Operand x, Device device);

// NumPy's operators: dtypes promote, shapes broadcast.
Array operator+(Operand x, Operand y);
Array operator-(Operand x, Operand y);
Array operator*(Operand x, Operand y);
Array operator/(Operand x, Operand y);
Array operator-(Operand x);
// Bools or integers, bit by bit.
Array operator&(Operand x, Operand y);
Array operator|(Operand x, Operand y);
Array operator^(Operand x, Operand y);
Array operator~(Operand x);
// Element by element: an array of bools.
Array operator<(Operand x, Operand y);
Array operator<=(Operand x, Operand y);
Array operator>(Operand x, Operand y);
Array operator>=(Operand x, Operand y);
// In C++, containers and algorithms included, == and != give one bool.
Array operator==(Operand x, Operand y) = delete;  // use numpy::equal, array_equal or is_same
Array operator!=(Operand x, Operand y) = delete;  // use numpy::not_equal, array_equal or is_same
// Rebinds x to x + y: other Arrays keep the old value. It may promote and broadcast.
Array& operator+=(Array& x, Operand y);
Array& operator-=(Array& x, Operand y);
Array& operator*=(Array& x, Operand y);
Array& operator/=(Array& x, Operand y);
void operator+=(Array&& x, Operand y) = delete;  // x[i] is a copy: x = x.at(i).add(y)
void operator-=(Array&& x, Operand y) = delete;  // x[i] is a copy: x = x.at(i).add(-y)
void operator*=(Array&& x, Operand y) = delete;  // x[i] is a copy: x = x.at(i).multiply(y)
void operator/=(Array&& x, Operand y) = delete;  // x[i] is a copy: x = x.at(i).multiply(1 / y)

// Brings operands to one dtype (and, with broadcast, to one shape or rank 0) by NumPy's rules.
void promote_dtypes(std::span<Array> operands, std::string_view function);
void broadcast_shapes(std::span<Array> operands, std::string_view function);
Shape broadcast_shapes(std::span<const Shape> shapes, std::string_view function);
Array broadcast_to(const Array& array, const Shape& shape);

}  // namespace plait

#include <plait/primitives/indexing.h>
#include <plait/primitives/random.h>
#include <plait/primitives/sorting.h>
#include <plait/primitives/windows.h>
