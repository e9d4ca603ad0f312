// checkpoint: a function whose linearization keeps its inputs, and what the policy says, instead of
// every intermediate result; the linear part computes the rest again.
//
// The linear equation is one call over tangents, primals and kept results. Transposing it runs the
// equations that do not depend on tangents forward first: that is the recomputation.
// SPDX-License-Identifier: Apache-2.0
#include <plait/jvp_interpreter.h>

#include <plait/bodies.h>
#include <plait/ops.h>
#include <plait/sizes.h>

namespace plait {
namespace {

// Effects fire once: what has one is not run again, and its results are kept whatever the policy
// says. A plain call that holds one is taken apart, and a loop is run again without it.
bool keeps(const flat::CheckpointPolicy& policy, const Equation& equation) {
  return equation.primitive->is_effectful() || policy(equation);
}
bool is_taken_apart(const Equation& equation) {
  return *equation.primitive == call_p && is_effectful(equation) && !equation.params.has("jvp") &&
         !equation.params.has("bwd");
}

// Runs the body and notes the results that the policy keeps, in order.
struct KeepingInterpreter {
  using Value = Array;
  const flat::CheckpointPolicy& policy;
  Arrays& kept;
  Array lift(const Array& array) { return array; }
  Arrays process(const Equation& equation, std::span<const Array> inputs) {
    if (is_taken_apart(equation))
      return interpret(*this, body_of_call(equation.params), Arrays(inputs.begin(), inputs.end()));
    Arrays outputs = bind(*equation.primitive, inputs, equation.params);
    if (keeps(policy, equation)) kept.insert(kept.end(), outputs.begin(), outputs.end());
    return outputs;
  }
};

// jvp of the body in which a kept result stands in for its computation.
struct RecomputingInterpreter {
  using Value = JvpInterpreter::Value;
  const flat::CheckpointPolicy& policy;
  std::span<const Array> kept;
  std::size_t next = 0;
  JvpInterpreter jvp;
  Value lift(const Array& array) { return jvp.lift(array); }
  static bool has_rule(const Primitive& primitive) { return JvpInterpreter::has_rule(primitive); }
  std::vector<Value> process(const Equation& given, std::span<const Value> inputs) {
    if (is_taken_apart(given))
      return interpret(*this, body_of_call(given.params), {inputs.begin(), inputs.end()});
    const bool is_kept = keeps(policy, given);
    Equation equation = given;
    if (!given.primitive->is_effectful()) equation.params = without_effects(given.params);
    if (!is_kept) return jvp.process(equation, inputs);
    const auto begin = kept.begin() + std::ptrdiff_t(next);
    const Arrays primals(begin, begin + std::ptrdiff_t(equation.outputs.size()));
    next += primals.size();
    std::vector<Value> outputs;
    if (std::all_of(inputs.begin(), inputs.end(),
                    [](const Value& input) { return input.tangent.is_zero(); })) {
      for (const Array& primal : primals) outputs.push_back(lift(primal));
      return outputs;
    }
    jvp.evaluate = [&](const Equation&, const Arrays&) { return primals; };
    outputs = jvp.process(equation, inputs);
    jvp.evaluate = {};
    for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i].primal = primals[i];
    return outputs;
  }
};

bool is_named(const Equation& equation, const std::vector<std::string>& names) {
  return *equation.primitive == tag_p &&
         std::find(names.begin(), names.end(), equation.params.text("name")) != names.end();
}

}  // namespace

Differentiated linearize_checkpoint(std::span<const Array> primals,
                                    std::span<const Tangent> tangents, const Params& params,
                                    Trace* linear) {
  const Jaxpr body = body_of_call(params);
  const Callable& callable = params.get<Callable>("policy");
  const auto& policy = callable.as<flat::CheckpointPolicy>();
  // Each has the policy too: derivatives of derivatives keep no more.
  auto with_body = [&](const Jaxpr& jaxpr) {
    const Params now = params.without("sizes").with("body", jaxpr);
    return jaxpr->sizes.empty()
               ? now
               : now.with("sizes", Shape(jaxpr->sizes.begin(), jaxpr->sizes.end()));
  };
  if (linear == Trace::current()) {  // forward mode keeps nothing
    const auto jvp = jvp_jaxpr(body, nonzero(tangents));
    const Arrays results =
        bind(call_p, concatenate(Arrays(primals.begin(), primals.end()), nonzero_arrays(tangents)),
             with_body(jvp->jaxpr));
    Differentiated result{slice(results, 0, body->outputs.size()), {}};
    result.tangents = spread(slice(results, body->outputs.size(), results.size()),
                             jvp->nonzero_outputs, avals_of(result.outputs));
    return result;
  }

  std::vector<Aval> kept_avals;
  const Jaxpr known = make_closed_jaxpr(
      [&](std::span<const Array> inputs) {
        Arrays kept;
        Arrays outputs =
            interpret(KeepingInterpreter{policy, kept}, body, Arrays(inputs.begin(), inputs.end()));
        for (const Array& array : kept) kept_avals.push_back(array.aval());
        outputs.insert(outputs.end(), kept.begin(), kept.end());
        return outputs;
      },
      body->input_avals(), body->sizes);
  Differentiated result;
  const Arrays computed = bind(call_p, Arrays(primals.begin(), primals.end()), with_body(known));
  result.outputs.assign(computed.begin(), computed.begin() + body->outputs.size());

  // Operands of the linear call: nonzero tangents, primals, kept results.
  std::vector<Aval> avals;
  Arrays operands;
  for (const Tangent& tangent : tangents)
    if (!tangent.is_zero()) {
      avals.push_back(tangent.aval());
      operands.push_back(tangent.array());
    }
  const std::size_t num_tangents = avals.size();
  avals.insert(avals.end(), body->input_avals().begin(), body->input_avals().end());
  avals.insert(avals.end(), kept_avals.begin(), kept_avals.end());
  Flags has_tangent;
  const Jaxpr recompute = make_closed_jaxpr(
      [&](std::span<const Array> inputs) {
        // Behind a barrier, so that the recomputation is not merged with the computation. It is in
        // here, so that what is kept are the operands themselves: a loop keeps its constants once.
        const Arrays again = bind(barrier_p, inputs.subspan(num_tangents, primals.size()));
        // Linearized, because a loop over values and tangents could not be transposed.
        LinearTrace tangent_trace("checkpoint");
        std::vector<JvpInterpreter::Value> values;
        for (std::size_t i = 0; i < primals.size(); ++i)
          values.push_back({again[i], tangents[i].is_zero()
                                          ? Tangent(primals[i].aval())
                                          : Tangent(tangent_trace.add_input(tangents[i].aval()))});
        RecomputingInterpreter interpreter{policy,
                                           inputs.subspan(num_tangents + primals.size()),
                                           0,
                                           {.linear = &tangent_trace, .evaluate = {}}};
        Arrays pushed;
        for (const JvpInterpreter::Value& value : interpret(interpreter, body, std::move(values))) {
          has_tangent.push_back(!value.tangent.is_zero());
          if (!value.tangent.is_zero()) pushed.push_back(value.tangent.array());
        }
        const Traced traced = tangent_trace.close(pushed);
        return eval_jaxpr(with_sizes(traced.jaxpr, body->sizes),
                          concatenate(slice(inputs, 0, num_tangents), traced.captured));
      },
      avals, body->sizes);
  operands.insert(operands.end(), primals.begin(), primals.end());
  operands.insert(operands.end(), computed.begin() + body->outputs.size(), computed.end());
  TraceScope scope(linear);
  const Arrays outputs = bind(call_p, operands, with_body(recompute));
  result.tangents = spread(outputs, has_tangent, avals_of(result.outputs));
  return result;
}

Arrays flat::checkpoint(const Function& function, std::span<const Array> inputs,
                        const Callable& policy, const std::string& name) {
  const std::vector<Aval> avals = avals_of(inputs);
  const Traced traced = make_jaxpr(function, avals, "checkpoint");
  Arrays operands(inputs.begin(), inputs.end());
  operands.insert(operands.end(), traced.captured.begin(), traced.captured.end());
  return call(traced.jaxpr, operands, {{"name", name}, {"policy", policy}});
}

Callable flat::make_policy(std::string name, CheckpointPolicy policy) {
  return Callable(std::move(name), std::make_shared<CheckpointPolicy>(std::move(policy)));
}

Callable flat::nothing_saveable() {
  static const Callable& policy =
      *new Callable(make_policy("nothing_saveable", [](const Equation&) { return false; }));
  return policy;
}

Callable flat::everything_saveable() {
  static const Callable& policy =
      *new Callable(make_policy("everything_saveable", [](const Equation&) { return true; }));
  return policy;
}

Callable flat::dots_saveable() {
  static const Callable& policy =
      *new Callable(make_policy("dots_saveable", [](const Equation& equation) {
        return *equation.primitive == dot_general_p || *equation.primitive == conv_p;
      }));
  return policy;
}

Callable flat::save_only_these_names(const std::vector<std::string>& names) {
  return make_policy("save_only_these_names",
                     [names](const Equation& equation) { return is_named(equation, names); });
}

}  // namespace plait
