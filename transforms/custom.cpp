// custom_jvp and custom_vjp: functions with derivative rules of their own.
//
// Under a trace of derivatives, a rule runs online: on the values themselves, like the function. So
// Python's `if` works in it, and it may call its own function. Elsewhere function and rules are
// traced to a custom_derivative (transforms/custom_derivative.cpp), which every other transform
// rewrites.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>
#include <plait/trace/suspended.h>
#include <plait/transforms/bodies.h>
#include <plait/transforms/custom_rules.h>
#include <plait/transforms/jvp_interpreter.h>
#include <plait/transforms/tape_nodes.h>

#include <algorithm>

namespace plait {
namespace {

using JvpTrace = OnlineTrace<JvpInterpreter>;

// --- Which way -----------------------------------------------------------------------------------

enum class Way {
  plain,   // nothing asks for derivatives: the function alone
  taped,   // the tape records the linearized function, which comes here again
  online,  // the rule runs for the current trace
  outer,   // the current trace has no part in it: the one around it decides
  staged,  // a custom_derivative
};

bool owns_any(const Trace& trace, std::span<const Array> inputs) {
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const Array& input) { return trace.owns(input); });
}

// A trace that records a program, which may be differentiated later. That of linearize records a
// linear one.
bool is_staging(const Trace& trace) {
  return dynamic_cast<const JaxprTrace*>(&trace) && !dynamic_cast<const LinearTrace*>(&trace);
}

// How a trace and those around it relate to some inputs.
struct Surroundings {
  bool traces_inputs = false;  // one of them owns an input
  bool stages = false;         // one of them records a program
  bool derives = false;        // one of them takes derivatives

  Surroundings(const Trace* current, std::span<const Array> inputs) {
    for (const Trace* trace = current; trace; trace = trace->parent()) {
      traces_inputs |= owns_any(*trace, inputs);
      stages |= is_staging(*trace);
      derives |= dynamic_cast<const JvpTrace*>(trace) != nullptr;
    }
  }
};

// For inputs on the tape that are not tracers.
Way way_of_recorded(const Trace* current, const Surroundings& around) {
  if (around.stages) return Way::staged;
  return current ? Way::outer : Way::taped;
}

Way way_of(Trace* current, std::span<const Array> inputs) {
  const Surroundings around(current, inputs);
  if (!around.traces_inputs)
    return is_recorded(inputs) ? way_of_recorded(current, around) : Way::plain;
  // Where there are variables, the tape may record what a trace such as vmap's computes.
  if (!around.stages && !around.derives && !may_record()) return Way::plain;
  const bool is_linear = dynamic_cast<const LinearTrace*>(current),
             is_jvp = dynamic_cast<const JvpTrace*>(current);
  if (!is_linear && !is_jvp) return Way::staged;
  if (!owns_any(*current, inputs)) return Way::outer;
  return is_jvp ? Way::online : Way::plain;  // a rule applies a linear function to tangents
}

// --- Online --------------------------------------------------------------------------------------

// The primals and tangents of the inputs of a trace of derivatives.
struct JvpInputs {
  Arrays primals;
  Tangents tangents;
  bool has_tangents = false;
  JvpInputs(JvpTrace& trace, std::span<const Array> inputs) {
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

// Under linearize, the parent is the linear trace, which passes operations on primals on to the
// trace around it.
Arrays push_by_jvp(JvpTrace& trace, const CustomRules& rules, const JvpInputs& parts,
                   const std::string& name) {
  Arrays results;
  {
    const SuspendedTrace suspended(trace, name);
    TraceScope scope(trace.parent());
    Arrays arguments = parts.primals;
    for (const Tangent& tangent : parts.tangents) arguments.push_back(tangent.instantiate());
    results = rules.jvp(arguments, nonzero(parts.tangents));
  }
  const std::size_t n = results.size() / 2;
  Arrays outputs;
  for (std::size_t i = 0; i < n; ++i) {
    check_rule_output("the jvp rule", name, i, results[n + i].aval(),
                      tangent_aval(results[i].aval()));
    outputs.push_back(with_tangent(trace, results[i], results[n + i]));
  }
  return outputs;
}

Arrays push_by_bwd(JvpTrace& trace, const CustomRules& rules, const JvpInputs& parts,
                   const std::string& name) {
  flat::Forward forward;
  Arrays tangents;
  OnlineBackward backward{rules.bwd, {}, {}, name};
  {
    const SuspendedTrace suspended(trace, name);
    TraceScope scope(trace.parent());
    forward = rules.fwd(parts.primals, nonzero(parts.tangents));
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

// The function alone. If an output has a tangent though no input has one, the function captured a
// value that has one.
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

// Forward mode does not run a backward rule online: it transposes a program of it.
bool is_reverse(const JvpTrace& trace, const JvpInputs& parts) {
  const auto* linear = dynamic_cast<const LinearTrace*>(trace.parent());
  return linear &&
         std::any_of(parts.tangents.begin(), parts.tangents.end(), [&](const Tangent& tangent) {
           return !tangent.is_zero() && linear->owns(tangent.array());
         });
}

// A function with its rules: how it is recorded, runs under a trace of derivatives, and is staged.
struct Custom {
  const Function& function;
  const CustomRules& rules;
  const std::string& name;

  Function owned() const {
    return [function = function, rules = rules, name = name](std::span<const Array> inputs) {
      return flat::custom(function, rules, inputs, name);
    };
  }
  Arrays online(JvpTrace& trace, const JvpInputs& parts, std::span<const Array> inputs) const {
    if (rules.jvp) return push_by_jvp(trace, rules, parts, name);
    return is_reverse(trace, parts) ? push_by_bwd(trace, rules, parts, name) : staged(inputs);
  }
  Arrays staged(std::span<const Array> inputs) const {
    return stage_custom(function, rules, inputs, name);
  }
};

Arrays apply_custom(const Custom& custom, std::span<const Array> inputs);

// Runs in the trace around one that has no part in it.
Arrays apply_outside(const Custom& custom, const Trace& trace, std::span<const Array> inputs) {
  const SuspendedTrace suspended(trace, custom.name);
  TraceScope scope(trace.parent());
  return apply_custom(custom, inputs);
}

Arrays apply_online(const Custom& custom, JvpTrace& trace, std::span<const Array> inputs) {
  const JvpInputs parts(trace, inputs);
  return parts.has_tangents ? custom.online(trace, parts, inputs)
                            : apply_outside(custom, trace, parts.primals);
}

Arrays apply_custom(const Custom& custom, std::span<const Array> inputs) {
  Trace* const current = Trace::current();
  switch (way_of(current, inputs)) {
    case Way::plain:
      return run_plain(custom.function, inputs, custom.name);
    case Way::taped:
      return record_linearized(custom.owned(), inputs, custom.name);
    case Way::online:
      return apply_online(custom, static_cast<JvpTrace&>(*current), inputs);
    case Way::outer:
      return apply_outside(custom, *current, inputs);
    case Way::staged:
      break;
  }
  return custom.staged(inputs);
}

}  // namespace

bool flat::stages_custom_rules(std::span<const Array> inputs) {
  Trace* current = Trace::current();
  Way way = way_of(current, inputs);
  for (; way == Way::outer; way = way_of(current, inputs)) current = current->parent();
  return way == Way::staged;
}

Arrays flat::custom(const Function& function, const CustomRules& rules,
                    std::span<const Array> inputs, const std::string& name) {
  return apply_custom({function, rules, name}, inputs);
}

Arrays flat::custom_jvp(const Function& function, const Function& jvp,
                        std::span<const Array> inputs, const std::string& name) {
  CustomRules rules;
  rules.jvp = [jvp](std::span<const Array> both, const Flags&) { return jvp(both); };
  return custom(function, rules, inputs, name);
}

Arrays flat::custom_vjp(const Function& function, const ForwardRule& fwd, const Function& bwd,
                        std::span<const Array> inputs, const std::string& name) {
  CustomRules rules;
  rules.fwd = [fwd](std::span<const Array> primals, const Flags&) { return fwd(primals); };
  rules.bwd = bwd;
  return custom(function, rules, inputs, name);
}

}  // namespace plait
