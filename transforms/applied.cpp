// See applied.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/diverge.h>
#include <plait/rules/interpret.h>
#include <plait/rules/speculate.h>
#include <plait/rules/steps.h>
#include <plait/transforms/applied.h>

namespace plait {
namespace {

std::vector<Aval> outputs_of_body(const Primitive& primitive, std::span<const Aval> inputs,
                                  const Params& params) {
  const std::string what(primitive.name());
  const Jaxpr body = open_body(params);
  if (int(inputs.size()) != body->num_binders)
    throw InternalError(what + ": " + std::to_string(inputs.size()) + " inputs for a body of " +
                        std::to_string(body->num_binders));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!(inputs[i].shape == body->avals[i].shape) || inputs[i].dtype != body->avals[i].dtype)
      throw InternalError(what + ": input " + std::to_string(i) + " is " + inputs[i].to_string() +
                          " where the body takes " + body->avals[i].to_string() + "\n" +
                          print(body));
  for (const Constraint& constraint : body->constraints)
    require_less_equal(constraint.left, constraint.right, [&] {
      const std::string* title = title_of(primitive, params);
      return ShapeError(what + ": the function `" + (title ? *title : "f") + "` needs " +
                            constraint.left.to_string() + " <= " + constraint.right.to_string() +
                            ", which its sizes do not decide",
                        "give it arrays of sizes that satisfy this");
    });
  return body->output_avals();
}

std::optional<PrunedEquation> prune_body(const Params& params, const Flags& outputs) {
  const Jaxpr body = open_body(params);
  const auto pruned = prune_jaxpr(body, outputs, Flags(std::size_t(body->num_binders)));
  return PrunedEquation{with_body(params, pruned->jaxpr), pruned->inputs, outputs};
}

std::vector<Body> bodies(const Params& params) {
  const Jaxpr body = open_body(params);
  return {{body, Body::Runs::once, 1, true, operands_from(0, body)}};
}

}  // namespace

Family applies_body(Inline::Rule inlining) {
  return {"applies_body", [=](Definition& definition) {
            const Primitive& primitive = definition.primitive();
            definition.family(holds_programs())
                .rule<Abstract>([&primitive](std::span<const Aval> inputs, const Params& params) {
                  return outputs_of_body(primitive, inputs, params);
                })
                .rule<Bodies>(bodies)
                .rule<Inline>(inlining)
                .rule<Steps>([&primitive](std::span<const Array> inputs, const Params& params, auto,
                                          const Steps::Visit& visit) {
                  const std::string* title = title_of(primitive, params);
                  visit({open_body(params),
                         {inputs.begin(), inputs.end()},
                         title ? *title : std::string(primitive.name())});
                })
                .refuse<Diverge>("its body takes its place")
                .rule<Prune>(prune_body)
                .rule<Mask>(
                    [](std::span<const Masked> inputs, std::span<const Aval>, const Params& params,
                       const SizeValues& sizes) { return mask_body(inputs, params, sizes); })
                .rule<Decompose>([](std::span<const Array> inputs, const Params& params) {
                  return eval_jaxpr(open_body(params), inputs);
                });
          }};
}

Params with_body(const Params& params, const Jaxpr& body) {
  const Params now = params.without("sizes").with("body", body);
  return body->sizes.empty() ? now
                             : now.with("sizes", Shape(body->sizes.begin(), body->sizes.end()));
}

Linearize::Rule linearize_body(ApplyPart apply) {
  return [apply](std::span<const Array> primals, std::span<const Tangent> tangents,
                 const Params& params, Trace* linear) {
    const Jaxpr body = open_body(params);
    const std::size_t num_outputs = body->outputs.size();
    const std::shared_ptr<const LinearizedJaxpr> jaxprs = linearize_jaxpr(body, nonzero(tangents));
    const Arrays known = apply(params, jaxprs->known, ".fwd", primals);
    const Arrays residuals = slice(known, num_outputs, known.size());
    TraceScope scope(linear);
    const Arrays pushed =
        apply(params, jaxprs->linear, ".lin", concatenate(nonzero_arrays(tangents), residuals));
    return Differentiated{slice(known, 0, num_outputs),
                          spread(pushed, jaxprs->nonzero_outputs, body->output_avals())};
  };
}

Transpose::Rule transpose_body(ApplyPart apply) {
  return [apply](std::span<const Tangent> cotangents, std::span<const TransposeInput> inputs,
                 const Params& params) {
    Flags linear;
    Arrays known;
    for (const TransposeInput& input : inputs) {
      linear.push_back(input.is_linear());
      if (!input.is_linear()) known.push_back(input.known());
    }
    const auto transposed = transpose_jaxpr(open_body(params), linear, nonzero(cotangents));
    const Arrays outputs =
        apply(params, transposed->jaxpr, ".t", concatenate(known, nonzero_arrays(cotangents)));
    Tangents results;
    std::size_t next = 0, at = 0;
    for (const TransposeInput& input : inputs) {
      const bool has = input.is_linear() && transposed->nonzero_inputs[at++];
      results.push_back(has ? Tangent(outputs[next++]) : Tangent(input.aval()));
    }
    return results;
  };
}

BatchedInFront::BatchedInFront(Dim size, std::span<const Batched> inputs) {
  for (const Batched& input : inputs) {
    arrays.push_back(input.dim ? batch_to_front(input, size) : input.array);
    dims.push_back(input.dim ? std::optional<int>(0) : std::nullopt);
  }
}

Batch::Rule batch_body(const Primitive& primitive, BatchAxis axis) {
  return [axis, &primitive](Dim size, std::span<const Batched> inputs, const Params& params) {
    Arrays operands;
    std::vector<std::optional<int>> dims;
    if (axis == BatchAxis::in_front) {
      BatchedInFront front(size, inputs);
      operands = std::move(front.arrays), dims = std::move(front.dims);
    } else {
      for (const Batched& input : inputs)
        operands.push_back(input.array), dims.push_back(input.dim);
    }
    const auto batched = batch_jaxpr(open_body(params), size, dims, axis == BatchAxis::in_front);
    const Arrays outputs = bind(primitive, operands, with_body(params, batched->jaxpr));
    std::vector<Batched> results;
    for (std::size_t i = 0; i < outputs.size(); ++i)
      results.push_back({outputs[i], batched->out_dims[i]});
    return results;
  };
}

Arrays mask_body(std::span<const Masked> inputs, const Params& params, const SizeValues& sizes) {
  Arrays outputs;
  for (Masked& output : eval_masked(open_body(params), inputs, sizes))
    outputs.push_back(std::move(output.padded));
  return outputs;
}

Jaxpr sample_body() {
  Builder builder;
  const Var x = builder.add_binder({{2, 3}, DType::float64});
  const Var y = builder.add_binder({{2, 3}, DType::float64});
  const Var sine = builder.add(sin_p, {x}, {}, {})[0];
  const Var product = builder.add(mul_p, {sine, y}, {}, {})[0];
  return builder.close({product, sine});
}

Sample sample_of_body(const Params& others) {
  const Sample::Input input{{{2, 3}, DType::float64}};
  return {{input, input}, with_body(others, sample_body())};
}

}  // namespace plait
