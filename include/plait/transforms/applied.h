// What equations that apply one body to their operands share: `call`, `composite`, `checkpoint` and
// `custom_derivative`. Their parameters are the body, values of its named sizes, and what tells one
// from another; transforms rewrite the body, and keep the equation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/abstract.h>
#include <plait/rules/inline.h>
#include <plait/transforms/bodies.h>

namespace plait {

// Supplies Abstract, Bodies, Inline, Steps, Prune, Mask, Decompose, Autocast and PictureGroup, and
// refuses Diverge, Spelling, Speculate and Motion.
Family applies_body(Inline::Rule inlining = {});

// The parameters with another body, whose sizes have the values that they have in the program
// around it: their own names.
Params with_body(const Params& params, const Jaxpr& body);

// Applies a part of the derivative of an equation's body: of these parameters, to these operands.
// suffix says which part: ".fwd" gives the outputs and residuals, ".lin" is the linear map, and
// ".t" the transpose.
using ApplyPart = Arrays (*)(const Params& of, const Jaxpr& part, std::string_view suffix,
                             std::span<const Array> operands);
Linearize::Rule linearize_body(ApplyPart apply);
Transpose::Rule transpose_body(ApplyPart apply);

// Where the batch axes of operands and results are.
enum class BatchAxis {
  anywhere,
  in_front,  // for parameters that speak of axes, or programs beside the body that must agree
};
Batch::Rule batch_body(const Primitive& primitive, BatchAxis axis);

// Operands whose batch axes, where they have one, are in front.
struct BatchedInFront {
  Arrays arrays;
  std::vector<std::optional<int>> dims;
  BatchedInFront(Dim size, std::span<const Batched> inputs);
};

// The body on padded arrays.
Arrays mask_body(std::span<const Masked> inputs, const Params& params, const SizeValues& sizes);

// A body of a product and a sine, for samples.
Jaxpr sample_body();
Sample sample_of_body(const Params& others);

}  // namespace plait
