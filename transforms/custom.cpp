// custom_jvp and custom_vjp: functions with derivative rules of their own.
//
// Under an interpreter of derivatives a rule runs online: on the values themselves, as the function
// would, so that Python's `if` works in it and it may call its own function. Elsewhere body and
// rules are traced to a call with entries beside the body, which every other transform rewrites
// alike (transforms/call.cpp).
// SPDX-License-Identifier: Apache-2.0
#include <plait/jvp_interpreter.h>
#include <plait/ops.h>
#include <plait/tape_nodes.h>
#include <plait/trace/suspended.h>
#include <plait/transforms.h>

#include <algorithm>

namespace plait {
namespace {

// What body and rules captured, once each.
void add_captured(const Traced& traced, Arrays& captured) {
  for (const Array& array : traced.captured)
    if (std::none_of(captured.begin(), captured.end(),
                     [&](const Array& other) { return other.is_same(array); }))
      captured.push_back(array);
}

// A traced rule as a jaxpr whose captured arrays are taken from the common list. Operands are those
// of the rule; the captured list's avals follow the first `position` of them.
Jaxpr with_captured(const Traced& traced, const std::vector<Aval>& operands, std::size_t position,
                    const Arrays& captured, const std::vector<std::size_t>& repeats) {
  std::vector<Aval> avals(operands.begin(), operands.begin() + position);
  for (const Array& array : captured) avals.push_back(array.aval());
  avals.insert(avals.end(), operands.begin() + position, operands.end());
  for (std::size_t repeat : repeats) avals.push_back(captured[repeat].aval());
  return make_closed_jaxpr(
      [&](std::span<const Array> inputs) {
        Arrays arguments(inputs.begin(), inputs.begin() + position);
        arguments.insert(arguments.end(), inputs.begin() + position + captured.size(),
                         inputs.begin() + operands.size() + captured.size());
        for (const Array& array : traced.captured)
          for (std::size_t i = 0; i < captured.size(); ++i)
            if (captured[i].is_same(array)) arguments.push_back(inputs[position + i]);
        return eval_jaxpr(traced.jaxpr, arguments);
      },
      avals);
}

void check_output(const char* what, const std::string& name, std::size_t index, const Aval& given,
                  const Aval& wanted) {
  if (given.shape == wanted.shape && given.dtype == wanted.dtype) return;
  throw ShapeError(std::string(what) + " of `" + name + "` returned " + given.to_string() +
                       " as number " + std::to_string(index) + ", where " + wanted.to_string() +
                       " is needed",
                   "return one of the shape and dtype of what it belongs to");
}

// --- Online --------------------------------------------------------------------------------------

using JvpTrace = OnlineTrace<JvpInterpreter>;

enum class Way {
  plain,   // nothing asks for derivatives: the function alone
  taped,   // the tape records the function linearized, which asks again
  online,  // the rule runs for the current trace
  outer,   // the current trace is not concerned: ask the one around it
  staged,  // a call with entries
};

bool owns_any(const Trace& trace, std::span<const Array> inputs) {
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const Array& input) { return trace.owns(input); });
}

Way way_of(Trace* current, std::span<const Array> inputs) {
  bool traced = false, staging = false, wanted = may_record();
  for (const Trace* trace = current; trace; trace = trace->parent()) {
    traced |= owns_any(*trace, inputs);
    staging |= !dynamic_cast<const LinearTrace*>(trace) && dynamic_cast<const JaxprTrace*>(trace);
    wanted |= staging || dynamic_cast<const JvpTrace*>(trace);
  }
  if (!traced && is_recorded(inputs))
    return staging ? Way::staged : current ? Way::outer : Way::taped;
  if (!traced || !wanted) return Way::plain;
  const bool differentiates = dynamic_cast<JvpTrace*>(current),
             linear = dynamic_cast<LinearTrace*>(current);
  if ((differentiates || linear) && !owns_any(*current, inputs)) return Way::outer;
  if (linear) return Way::plain;  // a rule applies a linear function to tangents
  return differentiates ? Way::online : Way::staged;
}

// The parts of the inputs of a trace of derivatives.
struct Parts {
  Arrays primals;
  Tangents tangents;
  bool has_tangents = false;
  Parts(JvpTrace& trace, std::span<const Array> inputs) {
    for (const Array& input : inputs) {
      const JvpInterpreter::Value value = trace.value_of(input);
      primals.push_back(value.primal);
      tangents.push_back(value.tangent);
      has_tangents |= !value.tangent.is_zero();
    }
  }
};

Array with_tangent(JvpTrace& trace, const Array& output, const Array& tangent) {
  return is_differentiable(output.aval()) ? trace.wrap({output, tangent}) : output;
}

// Under linearize the parent is the linear trace, which lets primals through to the trace around
// it.
Arrays custom_jvp_online(JvpTrace& trace, const Function& jvp, const Parts& parts,
                         const std::string& name) {
  Arrays results;
  {
    const SuspendedTrace suspended(trace, name);
    TraceScope scope(trace.parent());
    Arrays arguments = parts.primals;
    for (const Tangent& tangent : parts.tangents) arguments.push_back(tangent.instantiate());
    results = jvp(arguments);
  }
  const std::size_t n = results.size() / 2;
  Arrays outputs;
  for (std::size_t i = 0; i < n; ++i) {
    check_output("the jvp rule", name, i, results[n + i].aval(), tangent_aval(results[i].aval()));
    outputs.push_back(with_tangent(trace, results[i], results[n + i]));
  }
  return outputs;
}

Arrays custom_vjp_online(JvpTrace& trace, const flat::ForwardRule& fwd, const Function& bwd,
                         const Parts& parts, const std::string& name) {
  flat::Forward forward;
  Arrays tangents;
  OnlineBackward backward{bwd, {}, {}, name};
  {
    const SuspendedTrace suspended(trace, name);
    TraceScope scope(trace.parent());
    forward = fwd(parts.primals);
    for (const Array& input : parts.primals) backward.inputs.push_back(input.aval());
    for (const Array& output : forward.outputs) backward.outputs.push_back(output.aval());
    Arrays arguments = forward.residuals;
    for (const Tangent& tangent : parts.tangents)
      if (is_differentiable(tangent.aval())) arguments.push_back(tangent.instantiate());
    tangents = bind_custom_linear(backward, arguments);
  }
  Arrays outputs;
  std::size_t next = 0;
  for (const Array& output : forward.outputs)
    outputs.push_back(
        is_differentiable(output.aval()) ? with_tangent(trace, output, tangents[next++]) : output);
  return outputs;
}

// The function alone. Where it makes something with a tangent of nothing that has one, it captured
// that.
Arrays run_plain(const Function& function, std::span<const Array> inputs, const std::string& name) {
  Arrays outputs = function(inputs);
  for (const Array& output : outputs)
    if (!is_recorded(inputs) && is_recorded({&output, 1})) throw_captured(output, name);
  for (Trace* trace = Trace::current(); trace; trace = trace->parent()) {
    auto* jvp = dynamic_cast<JvpTrace*>(trace);
    for (const Array& output : outputs)
      if (jvp && jvp->owns(output) && !jvp->value_of(output).tangent.is_zero())
        throw_captured(output, name);
  }
  return outputs;
}

// Forward mode has no use for a backward rule as it runs: it transposes a program of it.
bool is_reverse(const JvpTrace& trace, const Parts& parts) {
  const auto* linear = dynamic_cast<const LinearTrace*>(trace.parent());
  return linear &&
         std::any_of(parts.tangents.begin(), parts.tangents.end(), [&](const Tangent& tangent) {
           return !tangent.is_zero() && linear->owns(tangent.array());
         });
}

// Rules being traced one inside another on this thread: one that applies its own function has no
// end.
class StagedRule {
 public:
  explicit StagedRule(const std::string& name) {
    constexpr int deepest = 50;
    if (depth_ == deepest)
      throw TracerError(
          "the rule of `" + name + "` applies `" + name + "` again, and is traced without end",
          "use in the rule a function without a rule of its own");
    ++depth_;
  }
  ~StagedRule() { --depth_; }
  StagedRule(const StagedRule&) = delete;

 private:
  inline static thread_local int depth_ = 0;
};

Arrays custom_jvp_staged(const Function& function, const Function& jvp,
                         std::span<const Array> inputs, const std::string& name);
Arrays custom_vjp_staged(const Function& function, const flat::ForwardRule& fwd,
                         const Function& bwd, std::span<const Array> inputs,
                         const std::string& name);

}  // namespace

bool flat::stages_custom_rules(std::span<const Array> inputs) {
  Trace* current = Trace::current();
  Way way = way_of(current, inputs);
  for (; way == Way::outer; way = way_of(current, inputs)) current = current->parent();
  return way == Way::staged;
}

Arrays flat::custom_jvp(const Function& function, const Function& jvp,
                        std::span<const Array> inputs, const std::string& name) {
  Trace* const current = Trace::current();
  const Way way = way_of(current, inputs);
  if (way == Way::plain) return run_plain(function, inputs, name);
  if (way == Way::taped)
    return record_linearized(
        [=](std::span<const Array> again) { return custom_jvp(function, jvp, again, name); },
        inputs, name);
  if (way == Way::staged) return custom_jvp_staged(function, jvp, inputs, name);
  if (way == Way::online) {
    auto& trace = static_cast<JvpTrace&>(*current);
    const Parts parts(trace, inputs);
    if (parts.has_tangents) return custom_jvp_online(trace, jvp, parts, name);
    const SuspendedTrace suspended(trace, name);
    TraceScope scope(trace.parent());
    return custom_jvp(function, jvp, parts.primals, name);
  }
  const SuspendedTrace suspended(*current, name);
  TraceScope scope(current->parent());
  return custom_jvp(function, jvp, inputs, name);
}

Arrays flat::custom_vjp(const Function& function, const ForwardRule& fwd, const Function& bwd,
                        std::span<const Array> inputs, const std::string& name) {
  Trace* const current = Trace::current();
  const Way way = way_of(current, inputs);
  if (way == Way::plain) return run_plain(function, inputs, name);
  if (way == Way::taped)
    return record_linearized(
        [=](std::span<const Array> again) { return custom_vjp(function, fwd, bwd, again, name); },
        inputs, name);
  if (way == Way::staged) return custom_vjp_staged(function, fwd, bwd, inputs, name);
  if (way == Way::online) {
    auto& trace = static_cast<JvpTrace&>(*current);
    const Parts parts(trace, inputs);
    if (parts.has_tangents)
      return is_reverse(trace, parts) ? custom_vjp_online(trace, fwd, bwd, parts, name)
                                      : custom_vjp_staged(function, fwd, bwd, inputs, name);
    const SuspendedTrace suspended(trace, name);
    TraceScope scope(trace.parent());
    return custom_vjp(function, fwd, bwd, parts.primals, name);
  }
  const SuspendedTrace suspended(*current, name);
  TraceScope scope(current->parent());
  return custom_vjp(function, fwd, bwd, inputs, name);
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
    check_output("the bwd rule", name, i, cotangents[i].aval(), inputs[i]);
    kept.push_back(cotangents[i]);
  }
  return kept;
}

// --- Staged --------------------------------------------------------------------------------------

namespace {

Arrays custom_jvp_staged(const Function& function, const Function& jvp,
                         std::span<const Array> inputs, const std::string& name) {
  const StagedRule deeper(name);
  const std::vector<Aval> avals = avals_of(inputs);
  const Traced body = make_jaxpr(function, avals, "custom_jvp");
  std::vector<Aval> both = avals;
  both.insert(both.end(), avals.begin(), avals.end());
  const Traced rule = make_jaxpr(jvp, both, "custom_jvp");
  const std::vector<Aval> outputs = body.jaxpr->output_avals(),
                          results = rule.jaxpr->output_avals();
  if (results.size() != 2 * outputs.size())
    throw TreeError("the jvp rule of `" + name + "` returned " + std::to_string(results.size()) +
                        " arrays, and the function has " + std::to_string(outputs.size()) +
                        " outputs",
                    "return a pair: the outputs, and their tangents in the same structure");
  for (std::size_t i = 0; i < results.size(); ++i)
    check_output("the jvp rule", name, i, results[i], outputs[i % outputs.size()]);
  Arrays captured;
  add_captured(body, captured);
  add_captured(rule, captured);
  // The entry takes primals, captured, tangents, and tangents of captured, which are zero.
  std::vector<std::size_t> repeats(captured.size());
  for (std::size_t i = 0; i < repeats.size(); ++i) repeats[i] = i;
  const Jaxpr entry = with_captured(rule, both, avals.size(), captured, repeats);
  Arrays operands(inputs.begin(), inputs.end());
  operands.insert(operands.end(), captured.begin(), captured.end());
  return flat::call(
      with_captured(body, avals, avals.size(), captured, {}), operands,
      {{"name", name}, {"jvp", entry}, {"num_captured", Dim(std::int64_t(captured.size()))}});
}

Arrays custom_vjp_staged(const Function& function, const flat::ForwardRule& fwd,
                         const Function& bwd, std::span<const Array> inputs,
                         const std::string& name) {
  const StagedRule deeper(name);
  const std::vector<Aval> avals = avals_of(inputs);
  const Traced body = make_jaxpr(function, avals, "custom_vjp");
  const Traced forward = make_jaxpr(
      [&](std::span<const Array> arguments) {
        flat::Forward result = fwd(arguments);
        if (result.outputs.size() != body.jaxpr->outputs.size())
          throw TreeError(
              "the fwd rule of `" + name + "` returned " + std::to_string(result.outputs.size()) +
                  " outputs, and the function has " + std::to_string(body.jaxpr->outputs.size()),
              "return a pair: the outputs, and residuals for bwd");
        result.outputs.insert(result.outputs.end(), result.residuals.begin(),
                              result.residuals.end());
        return result.outputs;
      },
      avals, "custom_vjp");
  const std::vector<Aval> outputs = body.jaxpr->output_avals(),
                          results = forward.jaxpr->output_avals();
  for (std::size_t i = 0; i < outputs.size(); ++i)
    check_output("the fwd rule", name, i, results[i], outputs[i]);
  // bwd takes residuals, then the cotangents of outputs that have one.
  std::vector<Aval> backward_avals(results.begin() + outputs.size(), results.end());
  const std::size_t num_residuals = backward_avals.size();
  for (const Aval& aval : outputs)
    if (is_differentiable(aval)) backward_avals.push_back(tangent_aval(aval));
  const OnlineBackward rule{bwd, avals, outputs, name};
  const Traced backward =
      make_jaxpr([&](std::span<const Array> arguments) { return rule.pull(arguments); },
                 backward_avals, "custom_vjp");
  Arrays captured;
  add_captured(body, captured);
  add_captured(forward, captured);
  add_captured(backward, captured);
  // Captured arrays reach bwd as further residuals, and get zero cotangents.
  const Jaxpr plain_fwd = with_captured(forward, avals, avals.size(), captured, {});
  const Jaxpr fwd_entry = make_closed_jaxpr(
      [&](std::span<const Array> arguments) {
        Arrays all = eval_jaxpr(plain_fwd, arguments);
        all.insert(all.end(), arguments.begin() + avals.size(), arguments.end());
        return all;
      },
      plain_fwd->input_avals());
  const Jaxpr plain_bwd = with_captured(backward, backward_avals, num_residuals, captured, {});
  const Jaxpr bwd_entry = make_closed_jaxpr(
      [&](std::span<const Array> arguments) {
        Arrays all = eval_jaxpr(plain_bwd, arguments);
        for (const Array& array : captured)
          if (is_differentiable(array.aval())) all.push_back(lax::zeros_like(array.aval()));
        return all;
      },
      plain_bwd->input_avals());
  Arrays operands(inputs.begin(), inputs.end());
  operands.insert(operands.end(), captured.begin(), captured.end());
  return flat::call(with_captured(body, avals, avals.size(), captured, {}), operands,
                    {{"name", name},
                     {"fwd", fwd_entry},
                     {"bwd", bwd_entry},
                     {"num_captured", Dim(std::int64_t(captured.size()))}});
}

}  // namespace

}  // namespace plait
