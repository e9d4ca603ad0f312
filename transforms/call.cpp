// What transforms do with a call: rewrite the body, and every entry beside it, and keep the call,
// so that grad(vmap(custom_vjp f)) keeps the rule and jit stays one executable.
//
// A custom_vjp's linearization is custom_linear: a linear equation of which only the transpose is
// known, the user's bwd. Its other rules transpose bwd on demand.
// SPDX-License-Identifier: Apache-2.0
#include <plait/bodies.h>
#include <plait/families.h>
#include <plait/ops.h>
#include <plait/trace/suspended.h>

#include <set>

namespace plait {
namespace {

// A jaxpr's sizes as values for themselves: what feeds it where the enclosing program has the same
// names.
Params with_own_sizes(const Params& params, const Jaxpr& jaxpr) {
  return jaxpr->sizes.empty()
             ? params.without("sizes")
             : params.with("sizes", Shape(jaxpr->sizes.begin(), jaxpr->sizes.end()));
}

// What a call's parameters say that is not an attribute of its composite.
bool is_attribute(const std::string& name) {
  static const auto& others = *new const std::set<std::string>{
      "body", "name", "sizes", "symbol", "jvp", "fwd", "bwd", "policy", "num_captured"};
  return !others.contains(name);
}

// The parameters of a call made from another: its name with a new body; a composite's symbol with a
// suffix and its attributes.
Params derived(const Params& params, const Jaxpr& body, const char* suffix) {
  std::vector<Params::Entry> entries{{"body", body}};
  for (const char* same : {"name", "policy"})
    if (const ParamValue* value = params.find(same)) entries.emplace_back(same, *value);
  if (!body->sizes.empty())
    entries.emplace_back("sizes", Shape(body->sizes.begin(), body->sizes.end()));
  if (const ParamValue* symbol = params.find("symbol")) {
    entries.emplace_back("symbol", std::get<std::string>(*symbol) + suffix);
    for (const Params::Entry& entry : params.entries())
      if (is_attribute(entry.first)) entries.push_back(entry);
  }
  return Params(std::move(entries));
}

constinit const Primitive custom_linear_p{"custom_linear"};

Differentiated linearize_call(std::span<const Array> primals, std::span<const Tangent> tangents,
                              const Params& params, Trace* linear) {
  const Jaxpr body = body_of_call(params);
  const Arrays inputs(primals.begin(), primals.end());
  if (const ParamValue* captured = params.find("num_captured"))
    for (std::size_t i = tangents.size() - std::get<Dim>(*captured).constant(); i < tangents.size();
         ++i)
      if (!tangents[i].is_zero()) throw_captured(primals[i], params.text("name"));
  if (params.has("jvp")) {
    // The user's rule computes outputs and tangents together; the part that does not depend on
    // tangents runs in the enclosing trace by itself.
    Arrays arguments = inputs;
    for (const Tangent& tangent : tangents) arguments.push_back(tangent.instantiate());
    TraceScope scope(linear);
    const Arrays results = eval_jaxpr(body_of_call(params, "jvp"), arguments);
    Differentiated result;
    const std::size_t n = results.size() / 2;
    result.outputs.assign(results.begin(), results.begin() + n);
    for (std::size_t i = 0; i < n; ++i) result.tangents.push_back(results[n + i]);
    return result;
  }
  if (params.has("bwd")) {
    const Jaxpr fwd = body_of_call(params, "fwd"), bwd = body_of_call(params, "bwd");
    const Arrays results = bind(call_p, inputs, derived(params, fwd, ".fwd"));
    const std::size_t num_outputs = body->outputs.size();
    Differentiated result;
    result.outputs.assign(results.begin(), results.begin() + num_outputs);
    Arrays arguments(results.begin() + num_outputs, results.end());
    for (const Tangent& tangent : tangents)
      if (is_differentiable(tangent.aval())) arguments.push_back(tangent.instantiate());
    TraceScope scope(linear);
    const Params rule{
        {"bwd", bwd},
        {"num_residuals", Dim(std::int64_t(results.size() - num_outputs))},
        {"name", params.has("name") ? *params.find("name") : ParamValue(std::string("f"))}};
    const Arrays outputs = bind(custom_linear_p, arguments, with_own_sizes(rule, bwd));
    std::size_t next = 0;
    for (const Array& output : result.outputs)
      result.tangents.push_back(is_differentiable(output.aval()) ? Tangent(outputs[next++])
                                                                 : Tangent(output.aval()));
    return result;
  }
  if (params.has("policy")) return linearize_checkpoint(primals, tangents, params, linear);
  const std::shared_ptr<const JvpJaxpr> jaxprs = linearize_jaxpr(body, nonzero(tangents));
  const Arrays known = bind(call_p, inputs, derived(params, jaxprs->known, ".fwd"));
  Differentiated result;
  const std::size_t num_outputs = body->outputs.size();
  result.outputs.assign(known.begin(), known.begin() + num_outputs);
  const Arrays residuals(known.begin() + num_outputs, known.end());
  Arrays arguments = concatenate(nonzero_arrays(tangents), residuals);
  TraceScope scope(linear);
  const Arrays outputs = bind(call_p, arguments, derived(params, jaxprs->linear, ".lin"));
  result.tangents = spread(outputs, jaxprs->nonzero_outputs, body->output_avals());
  return result;
}

Tangents transpose_call(std::span<const Tangent> cotangents, std::span<const TransposeInput> inputs,
                        const Params& params) {
  const Jaxpr body = body_of_call(params);
  std::vector<bool> linear;
  std::vector<Aval> avals;
  Arrays arguments;
  for (const TransposeInput& input : inputs) {
    linear.push_back(input.is_linear());
    avals.push_back(input.aval());
    if (!input.is_linear()) arguments.push_back(input.known());
  }
  const auto transposed = transpose_jaxpr(body, linear, nonzero(cotangents));
  const Arrays outputs = bind(call_p, concatenate(arguments, nonzero_arrays(cotangents)),
                              derived(params, transposed->jaxpr, ".t"));
  Tangents results;
  std::size_t next = 0, at = 0;
  for (std::size_t i = 0; i < linear.size(); ++i) {
    const bool has = linear[i] && transposed->nonzero_inputs[at++];
    results.push_back(has ? Tangent(outputs[next++]) : Tangent(avals[i]));
  }
  return results;
}

std::vector<Batched> batch_call(Dim size, std::span<const Batched> inputs, const Params& params) {
  const Jaxpr body = body_of_call(params);
  Arrays arrays;
  std::vector<std::optional<int>> dims;
  // Entries beside the body must agree with it on every batch dimension: there all are at the
  // front.
  const bool has_entries = params.has("jvp") || params.has("bwd") || params.has("symbol");
  for (const Batched& input : inputs) {
    arrays.push_back(has_entries && input.dim ? batch_to_front(input, size) : input.array);
    dims.push_back(has_entries && input.dim ? std::optional<int>(0) : input.dim);
  }
  const auto batched = batch_jaxpr(body, size, dims, has_entries);
  Params now = params.with("body", batched->jaxpr);
  if (params.has("jvp")) {
    std::vector<std::optional<int>> both = dims;
    both.insert(both.end(), dims.begin(), dims.end());
    now = now.with("jvp", batch_jaxpr(body_of_call(params, "jvp"), size, both, true)->jaxpr);
  }
  if (params.has("bwd")) {
    const auto fwd = batch_jaxpr(body_of_call(params, "fwd"), size, dims, true);
    const Jaxpr bwd = body_of_call(params, "bwd");
    const std::vector<std::optional<int>> all(bwd->num_binders, 0);
    const Jaxpr batched_bwd = batch_jaxpr(bwd, size, all, true)->jaxpr;
    // The cotangent of an operand that all examples share is the sum over them.
    const Jaxpr summed = make_closed_jaxpr(
        [&](std::span<const Array> arguments) {
          Arrays results = eval_jaxpr(batched_bwd, arguments);
          std::size_t next = 0;
          for (std::size_t i = 0; i < dims.size(); ++i) {
            if (!is_differentiable(body->avals[i])) continue;
            if (!dims[i]) results[next] = lax::reduce_sum(results[next], std::vector<int>{0});
            ++next;
          }
          return results;
        },
        batched_bwd->input_avals(), batched_bwd->sizes);
    now = now.with("fwd", fwd->jaxpr).with("bwd", summed);
  }
  std::vector<Batched> results;
  const Arrays outputs = bind(call_p, arrays, with_own_sizes(now, batched->jaxpr));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    results.push_back({outputs[i], batched->out_dims[i]});
  return results;
}

// The backward rule that runs as it is, if the equation has one.
const OnlineBackward* online_backward(const Params& params) {
  const Callable* rule = std::get_if<Callable>(params.find("bwd"));
  return rule ? &rule->as<const OnlineBackward>() : nullptr;
}

// The backward rule as a program: residuals, cotangents of outputs -> cotangents of inputs.
Jaxpr backward_program(const Params& params, std::span<const Array> operands) {
  const OnlineBackward* online = online_backward(params);
  if (!online) return body_of_call(params, "bwd");
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

// bwd transposed: residuals, tangents -> tangents of outputs.
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
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          if (const OnlineBackward* online = online_backward(params)) {
            std::vector<Aval> avals;
            for (const Aval& aval : online->outputs)
              if (is_differentiable(aval)) avals.push_back(tangent_aval(aval));
            return avals;
          }
          const Jaxpr bwd = body_of_call(params, "bwd");
          const std::int64_t num_residuals = params.integer("num_residuals");
          if (num_residuals < 0 || num_residuals > bwd->num_binders ||
              std::int64_t(inputs.size()) < num_residuals)
            throw InternalError("custom_linear: " + std::to_string(num_residuals) + " residuals");
          return std::vector<Aval>(bwd->avals.begin() + params.integer("num_residuals"),
                                   bwd->avals.begin() + bwd->num_binders);
        })
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
          const Arrays outputs = online ? online->pull(arguments)
                                        : flat::call(body_of_call(params, "bwd"), arguments,
                                                     {{"name", params.text("name")}});
          Tangents results;
          for (std::size_t i = 0; i < inputs.size(); ++i)
            results.push_back(i < num_residuals ? Tangent(inputs[i].aval())
                                                : Tangent(outputs[i - num_residuals]));
          return results;
        })
        .rule<Samples>([] { return std::vector<Sample>{}; });

const auto linearize_rules = rules<Linearize>().on(call_p, linearize_call);
const auto transpose_rules = rules<Transpose>().on(call_p, transpose_call);
const auto batch_rules = rules<Batch>().on(call_p, batch_call);

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

Arrays flat::call(const Jaxpr& body, std::span<const Array> inputs, const Params& extra) {
  // Entries beside the body list the same sizes, so that one list of values feeds them all.
  std::vector<Dim> sizes = body->sizes;
  for (const auto& [name, value] : extra.entries())
    if (const Jaxpr* entry = std::get_if<Jaxpr>(&value))
      collect_sizes(Shape((*entry)->sizes.begin(), (*entry)->sizes.end()), sizes);
  Params params = extra.with("body", with_sizes(body, sizes));
  for (const auto& [name, value] : extra.entries())
    if (const Jaxpr* entry = std::get_if<Jaxpr>(&value))
      params = params.with(name, with_sizes(*entry, sizes));
  return bind(call_p, inputs, with_own_sizes(params, params.get<Jaxpr>("body")));
}

}  // namespace plait
