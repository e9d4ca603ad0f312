// jvp: forward-mode differentiation. Each value carries a tangent, and each equation propagates
// tangents through its Jvp rule. Symbolic zeros stay symbolic.
//
// linearize uses the same interpreter, with tangents in a linear trace of their own.
// SPDX-License-Identifier: Apache-2.0
#include <plait/transforms/jvp_interpreter.h>

#include <plait/primitives/primitives.h>

#include <plait/transforms/bodies.h>

namespace plait {

bool carries_tangent(const Array& array) {
  for (Trace* trace = Trace::current(); trace; trace = trace->parent()) {
    if (!trace->owns(array)) continue;
    if (auto* jvp = dynamic_cast<OnlineTrace<JvpInterpreter>*>(trace))
      if (!jvp->value_of(array).tangent.is_zero()) return true;
    const std::optional<Array> beneath = trace->known(*array.node());
    return beneath && carries_tangent(*beneath);
  }
  return false;
}

std::vector<JvpInterpreter::Value> JvpInterpreter::process(const Equation& equation,
                                                           std::span<const Value> inputs) {
  Trace* primal_trace = linear ? linear->parent() : Trace::current();
  Trace* tangent_trace = linear ? linear : Trace::current();
  TraceScope primal_scope(primal_trace);
  Arrays primals;
  Tangents tangents;
  bool nonzero = false;
  for (const Value& input : inputs) {
    primals.push_back(input.primal);
    tangents.push_back(input.tangent);
    nonzero |= !input.tangent.is_zero();
  }
  Arrays outputs;
  Tangents output_tangents;
  if (!nonzero) {
    outputs = bind(*equation.primitive, primals, equation.params);
    for (const Array& output : outputs) output_tangents.push_back(Tangent(output.aval()));
  } else if (const Linearize::Rule* linearize = Linearize::table().find(*equation.primitive)) {
    Differentiated result = (*linearize)(primals, tangents, equation.params, tangent_trace);
    outputs = std::move(result.outputs);
    output_tangents = std::move(result.tangents);
  } else {
    const Jvp::Rule& jvp = rule<Jvp>(*equation.primitive);
    outputs = evaluate ? evaluate(equation, primals)
                       : Arrays(bind(*equation.primitive, primals, equation.params));
    TraceScope tangent_scope(tangent_trace);
    output_tangents = jvp(primals, tangents, outputs, equation.params);
  }
  std::vector<Value> results;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    // Integers and bools have no tangents, whatever a rule says.
    const bool has = is_differentiable(outputs[i].aval());
    results.push_back({outputs[i], has ? output_tangents[i] : Tangent(outputs[i].aval())});
  }
  return results;
}

Tangent as_weak(const Tangent& tangent, const Aval& primal) {
  if (!primal.weak || tangent.is_zero() || tangent.aval().weak) return tangent;
  return lax::convert_element_type(tangent.array(), tangent.aval().dtype, true);
}

Differentiated flat::jvp(const Function& function, std::span<const Array> primals,
                         std::span<const Tangent> tangents) {
  JvpInterpreter interpreter;
  OnlineTrace trace("jvp", interpreter);
  Arrays arguments;
  for (std::size_t i = 0; i < primals.size(); ++i)
    arguments.push_back(tangents[i].is_zero() ? primals[i] : trace.wrap({primals[i], tangents[i]}));
  Arrays outputs;
  {
    TraceScope scope(&trace);
    outputs = function(arguments);
  }
  Differentiated result;
  for (const Array& output : outputs) {
    const JvpInterpreter::Value value = trace.value_of(output);
    result.outputs.push_back(value.primal);
    result.tangents.push_back(as_weak(value.tangent, value.primal.aval()));
  }
  return result;
}

std::shared_ptr<const JvpJaxpr> jvp_jaxpr(const Jaxpr& jaxpr, const Flags& nonzero_inputs,
                                          const Flags& instantiate) {
  struct ForwardOf {
    using Result = JvpJaxpr;
    Flags nonzero_inputs, instantiate;
    bool operator==(const ForwardOf&) const = default;
  };
  return jaxpr->memo.get(ForwardOf{nonzero_inputs, instantiate}, [&] {
    JvpJaxpr result;
    std::vector<Aval> avals(jaxpr->input_avals().begin(), jaxpr->input_avals().end());
    for (std::size_t i = 0; i < nonzero_inputs.size(); ++i)
      if (nonzero_inputs[i]) avals.push_back(tangent_aval(jaxpr->avals[i]));
    result.jaxpr = make_closed_jaxpr(
        [&](std::span<const Array> inputs) {
          const std::size_t n = nonzero_inputs.size();
          const Tangents tangents = spread(inputs.subspan(n), nonzero_inputs, jaxpr->input_avals());
          std::vector<JvpInterpreter::Value> values;
          for (std::size_t i = 0; i < n; ++i) values.push_back({inputs[i], tangents[i]});
          Arrays outputs, output_tangents;
          for (const JvpInterpreter::Value& value :
               interpret(JvpInterpreter{}, jaxpr, std::move(values))) {
            const bool wanted = !instantiate.empty() && instantiate[outputs.size()] &&
                                is_differentiable(value.primal.aval());
            outputs.push_back(value.primal);
            result.nonzero_outputs.push_back(wanted || !value.tangent.is_zero());
            if (result.nonzero_outputs.back())
              output_tangents.push_back(value.tangent.instantiate());
          }
          return concatenate(std::move(outputs), output_tangents);
        },
        avals, jaxpr->sizes);
    return result;
  });
}

Array flat::fitting(const Aval& value, const Array& given, std::string_view what,
                    const std::string& which) {
  const Aval& aval = given.aval();
  if (!(aval.shape == value.shape))
    throw ShapeError(which + " has shape (" + aval.shape.to_string() + ") for a value of shape (" +
                         value.shape.to_string() + ")",
                     "give a " + std::string(what) + " of the value's shape");
  if (aval.dtype == value.dtype) return given;
  if (!aval.weak && is_inexact(aval.dtype))
    throw DtypeError(which + " has dtype " + std::string(name_of(aval.dtype)) +
                         " for a value of dtype " + std::string(name_of(value.dtype)),
                     "convert the " + std::string(what) + " with astype");
  return lax::convert_element_type(given, value.dtype);
}

Tangents flat::fitting(std::string_view transform, std::string_view what,
                       std::span<const Array> values, const TreeDef& structure,
                       std::span<const Array> given, const TreeDef& given_structure) {
  const std::string of = std::string(what);
  if (!(structure == given_structure))
    throw TreeError(std::string(transform) + ": the " + of + "s have the structure " +
                        given_structure.to_string() + ", and the values have " +
                        structure.to_string(),
                    "give one " + of + " for each value");
  Tangents result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Aval& wanted = values[i].aval();
    if (!is_inexact(wanted.dtype)) {
      result.emplace_back(tangent_aval(wanted));
      continue;
    }
    result.emplace_back(
        fitting(wanted, given[i], what,
                std::string(transform) + ": the " + of + " of value" + structure.path(int(i))));
  }
  return result;
}

}  // namespace plait
