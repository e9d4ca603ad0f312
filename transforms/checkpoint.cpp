// checkpoint: a function whose linearization keeps its inputs, and what the policy says, instead of
// every intermediate result; the linear part rematerialises the rest. Its primitive:
//
//   body     the function
//   policy   the equations whose results linearize keeps
//   name     shown in text, profiles and pictures
//   sizes    values of the body's named sizes, in order
//
// The linear equation is one checkpoint over tangents, primals and kept results. Its transpose
// first runs the equations that do not depend on tangents: that is the rematerialisation.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>
#include <plait/trace/data_sizes.h>
#include <plait/trace/sizes.h>
#include <plait/transforms/applied.h>
#include <plait/transforms/checkpoint_policies.h>
#include <plait/transforms/jvp_interpreter.h>

namespace plait {
namespace {

using flat::CheckpointPolicy;

// --- What is kept --------------------------------------------------------------------------------

// Effects happen once: an equation that has one is not run again, and its results are kept whatever
// the policy says. A call that holds one is inlined. A loop that holds one runs again without it.
bool keeps(const CheckpointPolicy& policy, const Equation& equation) {
  return equation.primitive->is_effectful() || policy(equation);
}
bool is_taken_apart(const Equation& equation) {
  const Inline::Rule* rule = Inline::table().find(*equation.primitive);
  return rule && rule->when != Inline::When::differentiated && is_effectful(equation);
}

// Runs the body, and collects the results that the policy keeps, in order.
struct KeepingInterpreter {
  using Value = Array;
  const CheckpointPolicy& policy;
  Arrays& kept;
  Array lift(const Array& array) { return array; }
  Arrays process(const Equation& equation, std::span<const Array> inputs) {
    if (is_taken_apart(equation))
      return interpret(*this, open_body(equation.params), Arrays(inputs.begin(), inputs.end()));
    Arrays outputs = bind(*equation.primitive, inputs, equation.params);
    if (keeps(policy, equation)) kept.insert(kept.end(), outputs.begin(), outputs.end());
    return outputs;
  }
};

// jvp of the body, with kept results in place of their computation.
struct RecomputingInterpreter {
  using Value = JvpInterpreter::Value;
  const CheckpointPolicy& policy;
  std::span<const Array> kept;
  std::size_t next = 0;
  JvpInterpreter jvp;
  Value lift(const Array& array) { return jvp.lift(array); }
  static bool has_rule(const Primitive& primitive) { return JvpInterpreter::has_rule(primitive); }
  std::vector<Value> process(const Equation& given, std::span<const Value> inputs) {
    if (is_taken_apart(given))
      return interpret(*this, open_body(given.params), {inputs.begin(), inputs.end()});
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

// --- Linearize -----------------------------------------------------------------------------------

const CheckpointPolicy& policy_of(const Params& params) {
  return params.get<Callable>("policy").as<CheckpointPolicy>();
}

// Parts have the policy, too: higher derivatives keep no more.
Arrays apply_part_of_checkpoint(const Params& of, const Jaxpr& part, std::string_view,
                                std::span<const Array> operands) {
  return bind(checkpoint_p, operands, with_body(of, part));
}

// Forward mode keeps no residuals.
Differentiated push_forward(std::span<const Array> primals, std::span<const Tangent> tangents,
                            const Params& params) {
  const Jaxpr body = open_body(params);
  const auto jvp = jvp_jaxpr(body, nonzero(tangents));
  const Arrays results = apply_part_of_checkpoint(params, jvp->jaxpr, ".jvp",
                                                  concatenate(primals, nonzero_arrays(tangents)));
  Differentiated result{slice(results, 0, body->outputs.size()), {}};
  result.tangents = spread(slice(results, body->outputs.size(), results.size()),
                           jvp->nonzero_outputs, avals_of(result.outputs));
  return result;
}

// The body, which returns the kept results after its own.
Jaxpr keeping_program(const Jaxpr& body, const CheckpointPolicy& policy) {
  return make_closed_jaxpr(
      [&](std::span<const Array> inputs) {
        Arrays kept;
        const Arrays outputs =
            interpret(KeepingInterpreter{policy, kept}, body, Arrays(inputs.begin(), inputs.end()));
        return concatenate(outputs, kept);
      },
      body->input_avals(), body->sizes);
}

// The linear part of the body, which rematerialises what is not kept: (tangents of the inputs that
// have one, primals, kept results) -> tangents of the outputs marked in has_tangent.
class RecomputingProgram {
 public:
  Jaxpr jaxpr;
  Flags has_tangent;

  RecomputingProgram(const Jaxpr& body, const CheckpointPolicy& policy,
                     std::span<const Tangent> tangents, std::span<const Aval> kept) {
    const std::vector<Aval> pushed = avals_of(nonzero_arrays(tangents));
    const std::size_t num_pushed = pushed.size(), num_primals = tangents.size();
    jaxpr = make_closed_jaxpr(
        [&](std::span<const Array> operands) {
          const Traced linear = linearized(body, policy, operands.subspan(num_pushed, num_primals),
                                           tangents, operands.subspan(num_pushed + num_primals));
          return eval_jaxpr(with_sizes(linear.jaxpr, body->sizes),
                            concatenate(operands.first(num_pushed), linear.captured));
        },
        concatenate(concatenate(pushed, body->input_avals()), kept), body->sizes);
  }

 private:
  // The body's values are computed here, and captured by the program that is linear in the
  // tangents.
  Traced linearized(const Jaxpr& body, const CheckpointPolicy& policy,
                    std::span<const Array> primals, std::span<const Tangent> tangents,
                    std::span<const Array> kept) {
    // The barrier prevents merging the recomputation with the computation. It is inside the body,
    // so that what is kept are the operands themselves: a loop keeps its consts once.
    const Arrays again = bind(barrier_p, primals);
    // Linearized, because a loop over primals and tangents could not be transposed.
    LinearTrace trace("checkpoint");
    std::vector<JvpInterpreter::Value> values;
    for (std::size_t i = 0; i < tangents.size(); ++i)
      values.push_back({again[i], tangents[i].is_zero()
                                      ? Tangent(again[i].aval())
                                      : Tangent(trace.add_input(tangents[i].aval()))});
    const JvpInterpreter jvp{.linear = &trace, .evaluate = {}};
    Arrays pushed;
    for (const JvpInterpreter::Value& value :
         interpret(RecomputingInterpreter{policy, kept, 0, jvp}, body, std::move(values))) {
      has_tangent.push_back(!value.tangent.is_zero());
      if (!value.tangent.is_zero()) pushed.push_back(value.tangent.array());
    }
    return trace.close(pushed);
  }
};

Differentiated linearize_checkpoint(std::span<const Array> primals,
                                    std::span<const Tangent> tangents, const Params& params,
                                    Trace* linear) {
  if (linear == Trace::current()) return push_forward(primals, tangents, params);
  const Jaxpr body = open_body(params);
  const CheckpointPolicy& policy = policy_of(params);
  const Arrays computed =
      apply_part_of_checkpoint(params, keeping_program(body, policy), ".fwd", primals);
  const Arrays kept = slice(computed, body->outputs.size(), computed.size());
  const RecomputingProgram recomputing(body, policy, tangents, avals_of(kept));
  Differentiated result{slice(computed, 0, body->outputs.size()), {}};
  const Arrays operands = concatenate(concatenate(nonzero_arrays(tangents), primals), kept);
  TraceScope scope(linear);
  const Arrays outputs = apply_part_of_checkpoint(params, recomputing.jaxpr, ".lin", operands);
  result.tangents = spread(outputs, recomputing.has_tangent, avals_of(result.outputs));
  return result;
}

}  // namespace

constinit const Primitive checkpoint_p{"checkpoint"};
static const auto checkpoint_def =
    define(checkpoint_p, "Applies a function of which derivatives keep what a policy says.")
        .family(applies_body())
        .rule<Linearize>(linearize_checkpoint)
        .rule<Transpose>(transpose_body(apply_part_of_checkpoint))
        .rule<Batch>(batch_body(checkpoint_p, BatchAxis::anywhere))
        .rule<Samples>([] {
          return std::vector{
              sample_of_body({{"name", std::string("f")}, {"policy", flat::nothing_saveable()}})};
        });

Arrays flat::checkpoint(const Function& function, std::span<const Array> inputs,
                        const Callable& policy, const std::string& name) {
  Traced traced;
  std::shared_ptr<const DataSizedOutputs> data_sized;
  {
    const DataSizedScope from_data;
    traced = make_jaxpr(function, avals_of(inputs), "checkpoint");
    data_sized = from_data.outputs();
  }
  Arrays results = bind(checkpoint_p, concatenate(inputs, traced.captured),
                        with_body({{"name", name}, {"policy", policy}}, traced.jaxpr));
  return cut_to_sizes(data_sized.get(), std::move(results), "checkpoint");
}

// --- Policies ------------------------------------------------------------------------------------

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

Callable flat::dots_with_no_batch_dims_saveable() {
  static const Callable& policy =
      *new Callable(make_policy("dots_with_no_batch_dims_saveable", [](const Equation& equation) {
        if (*equation.primitive == conv_p) return true;
        return *equation.primitive == dot_general_p && equation.params.ints("lhs_batch").empty();
      }));
  return policy;
}

namespace {
bool is_tag(const Equation& equation) { return *equation.primitive == tag_p; }
bool is_tag_of(const Equation& equation, const std::vector<std::string>& names) {
  return is_tag(equation) &&
         std::find(names.begin(), names.end(), equation.params.text("name")) != names.end();
}
}  // namespace

Callable flat::save_only_these_names(const std::vector<std::string>& names) {
  return make_policy("save_only_these_names",
                     [names](const Equation& equation) { return is_tag_of(equation, names); });
}

Callable flat::save_any_names_but_these(const std::vector<std::string>& names) {
  return make_policy("save_any_names_but_these", [names](const Equation& equation) {
    return is_tag(equation) && !is_tag_of(equation, names);
  });
}

Callable flat::save_anything_except_these_names(const std::vector<std::string>& names) {
  return make_policy("save_anything_except_these_names",
                     [names](const Equation& equation) { return !is_tag_of(equation, names); });
}

Callable flat::save_from_both_policies(const Callable& first, const Callable& second) {
  return make_policy("save_from_both_policies", [first, second](const Equation& equation) {
    return first.as<CheckpointPolicy>()(equation) || second.as<CheckpointPolicy>()(equation);
  });
}

}  // namespace plait
