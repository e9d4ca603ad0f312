// Families: the rules that kinds of primitives share. A block names its family and states only its
// own rules.
//
//   family          supplies
//   elementwise     Abstract, Eval (from Pointwise), Fold, Commute (never), Cost, Autocast,
//                   PictureGroup, Speculate, Motion, Batch, Mask, Samples
//   movement        Eval (a copy, from Alias), Cost, Autocast, PictureGroup, Speculate, Motion;
//                   Samples are the block's
//   holds programs  Autocast, PictureGroup (control), and refuses Spelling, Speculate and Motion
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/kernels.h>

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
// Primitives that are linear in their first operand (others, such as indices, have no tangent): the
// tangent goes through the primitive itself.
Jvp::Rule linear_through(const Primitive& primitive);

// Broadcasts a tangent of rank 0 to the output's shape; its transpose is a sum.
Tangent broadcast_tangent(const Tangent& tangent, const Aval& to);
Tangent unbroadcast_cotangent(const Tangent& cotangent, const Aval& to);

// Brings batched operands of an elementwise equation to one shape, batch axis first. Unbatched
// operands of rank 0 stay as they are. The results are operands for the same primitive.
Arrays align_batched(Dim size, std::span<const Batched> inputs);
// Batches a primitive whose operands are all aligned this way: the result's batch axis is 0.
Batch::Rule batch_elementwise(const Primitive& primitive);
// Masks an elementwise primitive: real sizes pass through, and the padding is unspecified.
Mask::Rule mask_elementwise(const Primitive& primitive);

// Eval and Fold through the primitive's Pointwise rule.
void eval_pointwise(const Primitive& primitive, std::span<const View> inputs,
                    std::span<const View> outputs, const Params& params);
std::optional<std::vector<Literal>> fold_pointwise(const Primitive& primitive,
                                                   std::span<const Literal> inputs,
                                                   const Params& params);

// Eval for primitives with an Alias rule: copies the aliased view.
Family movement();

// Primitives that apply programs among their parameters, as loops and calls do.
Family holds_programs();

// Throws the DtypeError "name: dtype int32 is not float or complex".
void require_dtype(std::string_view name, const Aval& aval, DTypes types);

// The smallest and the largest finite number of a dtype as a scalar literal.
Array lowest_finite(DType dtype);
Array largest_finite(DType dtype);

}  // namespace plait
