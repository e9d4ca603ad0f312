// call: the one primitive that holds a function. jit, composites, custom rules, checkpoint and user
// functions are this primitive with different parameters:
//
//   body      the jaxpr; every input and output is the body's
//   name      shown in text, profiles and pictures
//   sizes     values of the body's named sizes, in order
//   symbol    a composite's registered symbol ("softmax"), which a backend may claim whole
//   jvp       custom rule: (primals, tangents) -> (outputs, tangents)
//   fwd, bwd  custom rule: primals -> (outputs, residuals); (residuals, cotangents) -> cotangents
//   of primals policy    checkpoint: which equations' results linearize keeps; "nothing" recomputes
//   all
//
// Its rules for the transforms are in transforms/call.cpp.
// SPDX-License-Identifier: Apache-2.0
#include <plait/families.h>
#include <plait/ops.h>

namespace plait {

Jaxpr body_of_call(const Params& params, std::string_view entry = "body") {
  const Jaxpr& body = params.get<Jaxpr>(entry);
  const ParamValue* sizes = params.find("sizes");
  if (!sizes) return body;
  std::vector<std::pair<Dim, Dim>> replacements;
  const Shape& values = params.get<Shape>("sizes");
  if (values.size() < body->sizes.size())
    throw InternalError("call: " + std::to_string(values.size()) + " values for the sizes of\n" +
                        print(body));
  bool trivial = true;
  for (std::size_t i = 0; i < body->sizes.size(); ++i) {
    replacements.emplace_back(body->sizes[i], values[i]);
    trivial &= body->sizes[i] == values[i];
  }
  return trivial ? body : instantiate(body, replacements);
}

constinit const Primitive call_p{"call"};
static const auto call_def =
    define(call_p, "Applies the function that the parameter body holds.")
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const Jaxpr body = body_of_call(params, "body");
          if (int(inputs.size()) != body->num_binders)
            throw InternalError("call: " + std::to_string(inputs.size()) +
                                " inputs for a body of " + std::to_string(body->num_binders));
          for (std::size_t i = 0; i < inputs.size(); ++i)
            if (!(inputs[i].shape == body->avals[i].shape) ||
                inputs[i].dtype != body->avals[i].dtype)
              throw InternalError("call: input " + std::to_string(i) + " is " +
                                  inputs[i].to_string() + " where the body takes " +
                                  body->avals[i].to_string() + "\n" + print(body));
          for (const Constraint& constraint : body->constraints)
            require_less_equal(constraint.left, constraint.right, [&] {
              return ShapeError(
                  "call: the function `" + (params.has("name") ? params.text("name") : "f") +
                      "` needs " + constraint.left.to_string() +
                      " <= " + constraint.right.to_string() + ", which its sizes do not decide",
                  "give it arrays of sizes that satisfy this");
            });
          return body->output_avals();
        })
        .rule<Decompose>([](std::span<const Array> inputs, const Params& params) {
          return eval_jaxpr(body_of_call(params, "body"), inputs);
        })
        .rule<Samples>([] {
          Builder builder;
          const Var x = builder.add_binder({{2, 3}, DType::float64});
          const Var y = builder.add_binder({{2, 3}, DType::float64});
          const Var sine = builder.add(sin_p, {x}, {}, {})[0];
          const Var product = builder.add(mul_p, {sine, y}, {}, {})[0];
          const Jaxpr body = builder.close({product, sine});
          const Sample::Input input{{{2, 3}, DType::float64}};
          return std::vector<Sample>{
              {{input, input}, {{"body", body}, {"name", std::string("f")}}}};
        });

}  // namespace plait
