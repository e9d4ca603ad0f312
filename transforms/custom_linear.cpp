// custom_linear: the linearization of a function with a custom backward rule. Of this linear
// equation only the transpose is known, the user's bwd. Its other rules transpose bwd on demand.
//
//   bwd             a program, or a rule that runs online (OnlineBackward)
//   num_residuals   how many operands come before the tangents
//   name            of the function
//   sizes           values of the program's named sizes, in order
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/interpret.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>
#include <plait/transforms/applied.h>
#include <plait/transforms/custom_rules.h>

namespace plait {
namespace {

constinit const Primitive custom_linear_p{"custom_linear"};

// The backward rule, if it runs online.
const OnlineBackward* online_backward(const Params& params) {
  const Callable* rule = std::get_if<Callable>(params.find("bwd"));
  return rule ? &rule->as<const OnlineBackward>() : nullptr;
}

// The backward rule as a program: (residuals, cotangents of outputs) -> cotangents of inputs.
Jaxpr backward_program(const Params& params, std::span<const Array> operands) {
  const OnlineBackward* online = online_backward(params);
  if (!online) return open_body(params, "bwd");
  std::vector<Aval> avals;
  for (std::size_t i = 0; i < std::size_t(params.integer("num_residuals")); ++i)
    avals.push_back(operands[i].aval());
  for (const Aval& aval : online->outputs)
    if (is_differentiable(aval)) avals.push_back(tangent_aval(aval));
  const Traced traced =
      make_jaxpr([&](std::span<const Array> arguments) { return online->pull(arguments); }, avals,
                 "custom_vjp");
  if (!traced.captured.empty())
    throw TracerError("forward mode transposes the bwd rule of `" + online->name +
                          "`, which captures an array of type " +
                          traced.captured[0].aval().to_string(),
                      "let fwd return the array among the residuals");
  return traced.jaxpr;
}

// bwd transposed: (residuals, tangents) -> tangents of outputs.
Jaxpr forward_of(const Jaxpr& bwd, std::size_t num_residuals) {
  std::vector<bool> linear(bwd->num_binders, true);
  for (std::size_t i = 0; i < num_residuals; ++i) linear[i] = false;
  const auto transposed =
      transpose_jaxpr(bwd, linear, std::vector<bool>(bwd->outputs.size(), true));
  return make_closed_jaxpr(
      [&](std::span<const Array> inputs) {
        const Arrays outputs = eval_jaxpr(transposed->jaxpr, inputs);
        Arrays results;
        std::size_t next = 0;
        for (std::size_t i = 0; i < transposed->nonzero_inputs.size(); ++i) {
          const Aval& aval = bwd->avals[num_residuals + i];
          results.push_back(transposed->nonzero_inputs[i] ? outputs[next++]
                                                          : lax::zeros_like(aval));
        }
        return results;
      },
      transposed->jaxpr->input_avals(), transposed->jaxpr->sizes);
}

const auto custom_linear_def =
    define(
        custom_linear_p,
        "The linearization of a function with a custom backward rule: operands are residuals and "
        "tangents; "
        "its transpose is the user's rule, and everything else follows from transposing that rule.")
        .family(holds_programs())
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          if (const OnlineBackward* online = online_backward(params)) {
            std::vector<Aval> avals;
            for (const Aval& aval : online->outputs)
              if (is_differentiable(aval)) avals.push_back(tangent_aval(aval));
            return avals;
          }
          const Jaxpr bwd = open_body(params, "bwd");
          const std::int64_t num_residuals = params.integer("num_residuals");
          if (num_residuals < 0 || num_residuals > bwd->num_binders ||
              std::int64_t(inputs.size()) < num_residuals)
            throw InternalError("custom_linear: " + std::to_string(num_residuals) + " residuals");
          return std::vector<Aval>(bwd->avals.begin() + params.integer("num_residuals"),
                                   bwd->avals.begin() + bwd->num_binders);
        })
        .rule<PictureGroup>(PictureGroup::other)
        .rule<Decompose>([](std::span<const Array> inputs, const Params& params) {
          return eval_jaxpr(
              forward_of(backward_program(params, inputs), params.integer("num_residuals")),
              inputs);
        })
        .rule<Transpose>([](std::span<const Tangent> cotangents,
                            std::span<const TransposeInput> inputs, const Params& params) {
          const std::size_t num_residuals = params.integer("num_residuals");
          Arrays arguments;
          for (std::size_t i = 0; i < num_residuals; ++i) arguments.push_back(inputs[i].known());
          for (const Tangent& cotangent : cotangents) arguments.push_back(cotangent.instantiate());
          const OnlineBackward* online = online_backward(params);
          const Arrays outputs =
              online ? online->pull(arguments)
                     : flat::call(open_body(params, "bwd"), arguments, params.text("name"));
          Tangents results;
          for (std::size_t i = 0; i < inputs.size(); ++i)
            results.push_back(i < num_residuals ? Tangent(inputs[i].aval())
                                                : Tangent(outputs[i - num_residuals]));
          return results;
        })
        .rule<Samples>([] { return std::vector<Sample>{}; });

}  // namespace

Arrays bind_custom_linear(const OnlineBackward& backward, std::span<const Array> arguments) {
  const std::size_t num_tangents =
      std::count_if(backward.inputs.begin(), backward.inputs.end(),
                    [](const Aval& aval) { return is_differentiable(aval); });
  return bind(custom_linear_p, arguments,
              Params{{"bwd", Callable(backward.name, std::make_shared<OnlineBackward>(backward))},
                     {"num_residuals", Dim(std::int64_t(arguments.size() - num_tangents))},
                     {"name", backward.name}});
}

Arrays bind_custom_linear(const Jaxpr& bwd, std::size_t num_residuals, const std::string& name,
                          std::span<const Array> arguments) {
  const Params rule{
      {"bwd", bwd}, {"num_residuals", Dim(std::int64_t(num_residuals))}, {"name", name}};
  const std::vector<Dim>& sizes = bwd->sizes;
  return bind(custom_linear_p, arguments,
              sizes.empty() ? rule : rule.with("sizes", Shape(sizes.begin(), sizes.end())));
}

void check_rule_output(const char* rule, const std::string& name, std::size_t index,
                       const Aval& given, const Aval& wanted) {
  if (given.shape == wanted.shape && given.dtype == wanted.dtype) return;
  throw ShapeError(std::string(rule) + " of `" + name + "` returned " + given.to_string() +
                       " as number " + std::to_string(index) + ", where " + wanted.to_string() +
                       " is needed",
                   "return one of the shape and dtype of what it belongs to");
}

Arrays OnlineBackward::pull(std::span<const Array> arguments) const {
  const TransformScope scope("custom_vjp", name);
  const auto is_some = [](const Aval& aval) { return is_differentiable(aval); };
  std::size_t next = arguments.size() - std::count_if(outputs.begin(), outputs.end(), is_some);
  Arrays all(arguments.begin(), arguments.begin() + next);
  for (const Aval& aval : outputs)
    all.push_back(is_differentiable(aval) ? arguments[next++] : lax::zeros_like(aval));
  const Arrays cotangents = bwd(all);
  if (cotangents.size() != inputs.size())
    throw TreeError("the bwd rule of `" + name + "` returned " + std::to_string(cotangents.size()) +
                        " cotangents for " + std::to_string(inputs.size()) + " inputs",
                    "return one cotangent for each argument, in the structure of the arguments");
  Arrays kept;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!is_differentiable(inputs[i])) continue;
    check_rule_output("the bwd rule", name, i, cotangents[i].aval(), inputs[i]);
    kept.push_back(cotangents[i]);
  }
  return kept;
}

}  // namespace plait
