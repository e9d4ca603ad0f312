// Families: the rules that kinds of primitives share. A block names its family and states only what
// is its own.
//
//   family          supplies
//   elementwise     Abstract, Eval (from Pointwise), Fold, Batch, Mask, Samples
//   movement        Eval (a copy, from Alias), Samples of its own shapes are the block's
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/kernels.h>

namespace plait {

enum class ResultType { same, truth, real };

// Operands of one dtype of the set, of equal shape or rank 0.
Family elementwise(DTypes types, int num_operands, ResultType result = ResultType::same,
                   Sample::Input::Values values = Sample::Input::Values::normal);
inline Family elementwise(DTypes types) { return elementwise(types, 1); }

// Derivatives of elementwise primitives, as multipliers of the tangents:
//   .rule<Jvp>(unary([](auto x, auto y) { return 1.0 - y * y; }))      d tanh = (1 - tanh^2) dx
Jvp::Rule unary(std::function<Array(const Array& x, const Array& y)> multiplier);
//   .rule<Jvp>(binary(dx, dy)): multipliers of both tangents given x, y and the output.
using Partial = std::function<Array(const Array& x, const Array& y, const Array& out)>;
Jvp::Rule binary(Partial dx, Partial dy);
// Piecewise constant functions: the tangent is a symbolic zero.
Jvp::Rule zero_derivative();
// Primitives linear in their first operand (others, like indices, have no tangent): the tangent
// goes through the primitive itself.
Jvp::Rule linear_through(const Primitive& primitive);

// A tangent of rank 0 as an array of the output's shape, and back: the sum that transposes it.
Tangent broadcast_tangent(const Tangent& tangent, const Aval& to);
Tangent unbroadcast_cotangent(const Tangent& cotangent, const Aval& to);

// Brings batched operands of an elementwise equation to one shape, batch dimension first; operands
// that are rank 0 and unbatched stay so. Returns arrays ready for the same primitive.
Arrays align_batched(Dim size, std::span<const Batched> inputs);
// Batches a primitive whose operands all align so: result dim 0.
Batch::Rule batch_elementwise(const Primitive& primitive);
// Masks an elementwise primitive: real sizes pass through, padding holds whatever comes out.
Mask::Rule mask_elementwise(const Primitive& primitive);

// Eval and Fold through the primitive's Pointwise rule.
void eval_pointwise(const Primitive& primitive, std::span<const View> inputs,
                    std::span<const View> outputs, const Params& params);
std::optional<std::vector<Literal>> fold_pointwise(const Primitive& primitive,
                                                   std::span<const Literal> inputs,
                                                   const Params& params);

// Eval for primitives with an Alias rule: copies the aliased view.
Family movement();

// Throws the DtypeError "name: dtype int32 is not float or complex".
void require_dtype(std::string_view name, const Aval& aval, DTypes types);
void require_rank(std::string_view name, const Aval& aval, int rank);
// Applies a primitive with these params, for rules: apply(reshape_p, params)(x).
inline Array apply(const Primitive& primitive, const Params& params,
                   std::initializer_list<Array> inputs) {
  return bind(primitive, inputs, params);
}

}  // namespace plait
