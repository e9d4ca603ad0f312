// autocast: products in 16 bits, everything numerically sensitive in float32. See autocast.h.
//
// Each value keeps its type, and is held in float32, in the policy's dtype, or in both. A cast is
// made where an equation needs the other one, once for each value. A program that an equation holds
// keeps its types, so that carries and branches agree as before.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/interpret.h>
#include <plait/transforms/autocast.h>
#include <plait/transforms/composites.h>

#include <cmath>

namespace plait {
namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The name of an equation, and its usual precision. A composite says both.
struct Precision {
  std::string name;
  Autocast::Rule usual;
};

Autocast::Rule usual_of_composite(std::string_view symbol) {
  const Composite* composite = find_composite(symbol);
  return composite ? composite->autocast : Autocast::full;
}

Precision precision_of(const Equation& equation) {
  if (*equation.primitive == composite_p) {
    const std::string& symbol = equation.params.text("symbol");
    return {symbol, usual_of_composite(symbol)};
  }
  const Autocast::Rule* rule = Autocast::table().find(*equation.primitive);
  return {std::string(equation.primitive->name()), rule ? *rule : Autocast::full};
}

struct AutocastInterpreter {
  static constexpr std::string_view name = "autocast";
  // A value of this type, held in one of the two arrays or in both.
  struct Held {
    Aval aval;
    Array full, low;
  };
  using Value = std::shared_ptr<Held>;
  const AutocastPolicy& policy;
  Trace* enclosing;

  Value lift(const Array& array) { return std::make_shared<Held>(Held{array.aval(), array, {}}); }
  const Aval& aval(const Value& value) { return value->aval; }
  std::optional<Array> known(const Value& value) {
    TraceScope scope(enclosing);
    return full(value);
  }

  std::vector<Value> process(const Equation& equation, std::span<const Value> inputs) {
    const Precision precision = precision_of(equation);
    const bool castable = std::any_of(inputs.begin(), inputs.end(), is_castable);
    if (castable && is_low(precision, equation.params, inputs)) return in_low(equation, inputs);
    Arrays arrays;
    for (const Value& input : inputs) arrays.push_back(full(input));
    std::vector<Value> values;
    const Equation full = in_full(equation, precision.name);
    for (const Array& output : bind(*full.primitive, arrays, full.params))
      values.push_back(lift(output));
    return values;
  }

  Array full(const Value& value) const {
    if (!value->full.is_valid())
      value->full = lax::convert_element_type(value->low, value->aval.dtype, value->aval.weak);
    return value->full;
  }

 private:
  static bool is_castable(const Value& value) { return value->aval.dtype == DType::float32; }

  Array low(const Value& value) const {
    if (!is_castable(value)) return full(value);
    if (!value->low.is_valid()) value->low = lax::convert_element_type(value->full, policy.dtype);
    return value->low;
  }

  // Whether a scalar is nearly exact in the policy's dtype, where it neither underflows nor
  // overflows.
  bool is_tame(const Value& value) const {
    const auto literal = value->full.is_valid() ? value->full.as_literal() : std::nullopt;
    if (!literal) return false;
    const double exact = literal->as_double(),
                 cast = plait::cast(*literal, policy.dtype, false).as_double();
    return std::abs(cast - exact) <= std::abs(exact) / 128;
  }

  bool is_low(const Precision& precision, const Params& params,
              std::span<const Value> inputs) const {
    if (contains(policy.full, precision.name)) return false;
    if (const ParamValue* dtype = params.find("dtype");
        dtype && std::get<DType>(*dtype) != DType::float32)
      return false;  // another dtype of results was asked for
    if (precision.usual == Autocast::low || contains(policy.low, precision.name)) return true;
    if (precision.usual != Autocast::follows) return false;
    bool any = false;
    for (const Value& input : inputs) {
      if (!is_castable(input)) continue;
      if (!input->low.is_valid() && !is_tame(input)) return false;
      any |= input->low.is_valid() && !input->full.is_valid();
    }
    return any;
  }

  std::vector<Value> in_low(const Equation& equation, std::span<const Value> inputs) const {
    std::vector<Aval> avals;
    Arrays arrays;
    for (const Value& input : inputs) {
      avals.push_back(input->aval);
      arrays.push_back(low(input));
    }
    Params params = equation.params;
    if (params.has("dtype")) params = params.with("dtype", policy.dtype);
    const std::vector<Aval> outputs = infer(*equation.primitive, avals, equation.params);
    const Arrays results = *equation.primitive == composite_p
                               ? again(params, arrays)
                               : Arrays(bind(*equation.primitive, arrays, params));
    std::vector<Value> values;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const bool is_cast = results[i].dtype() != outputs[i].dtype;
      values.push_back(std::make_shared<Held>(is_cast ? Held{outputs[i], {}, results[i]}
                                                      : Held{outputs[i], results[i], {}}));
    }
    return values;
  }

  // A composite, traced again for operands of other dtypes.
  static Arrays again(const Params& params, const Arrays& arrays) {
    return composite(*find_composite(params.text("symbol")), arrays, attributes_of(params));
  }

  // Rewrites the programs that the equation holds. Composites that are computed in float32 stay
  // whole; derivatives of others become plain calls.
  Equation in_full(const Equation& equation, const std::string& name) const {
    if (!holds_bodies(equation.params)) return equation;
    if (*equation.primitive == composite_p) {
      const std::string base = name.substr(0, name.find('.'));
      const bool is_low = usual_of_composite(base) == Autocast::low || contains(policy.low, base);
      if (base == name || !is_low || contains(policy.full, base)) return equation;
    }
    return map_bodies(equation, [&](const Jaxpr& body) { return autocast_jaxpr(body, policy); });
  }
};

void require_valid(const AutocastPolicy& policy) {
  if (policy.dtype != DType::bfloat16 && policy.dtype != DType::float16)
    throw ValueError("autocast: the policy's dtype is " + std::string(name_of(policy.dtype)),
                     "choose bfloat16 or float16");
  for (const auto* names : {&policy.low, &policy.full})
    for (const std::string& name : *names)
      if (!find_primitive(name) && !find_composite(name))
        throw ValueError("autocast: the policy names '" + name + "', which is no primitive",
                         "name one of those that plait.rules('abstract') lists, or a composite "
                         "such as 'softmax'");
}

}  // namespace

Arrays flat::autocast(const Function& function, std::span<const Array> inputs,
                      const AutocastPolicy& policy) {
  require_valid(policy);
  AutocastInterpreter interpreter{policy, Trace::current()};
  OnlineTrace trace("autocast", interpreter);
  Arrays arguments;
  for (const Array& input : inputs) arguments.push_back(trace.wrap(interpreter.lift(input)));
  Arrays outputs;
  {
    TraceScope scope(&trace);
    outputs = function(arguments);
  }
  Arrays results;
  for (const Array& output : outputs) results.push_back(interpreter.full(trace.value_of(output)));
  return results;
}

Jaxpr autocast_jaxpr(const Jaxpr& jaxpr, const AutocastPolicy& policy) {
  struct InPolicy {
    using Result = Jaxpr;
    AutocastPolicy policy;
    bool operator==(const InPolicy&) const = default;
  };
  return *jaxpr->memo.get(InPolicy{policy}, [&] {
    return make_closed_jaxpr(
        [&](std::span<const Array> inputs) {
          AutocastInterpreter interpreter{policy, Trace::current()};
          std::vector<AutocastInterpreter::Value> values;
          for (const Array& input : inputs) values.push_back(interpreter.lift(input));
          Arrays outputs;
          for (const auto& output : interpret(interpreter, jaxpr, std::move(values)))
            outputs.push_back(interpreter.full(output));
          return outputs;
        },
        jaxpr->input_avals(), jaxpr->sizes);
  });
}

}  // namespace plait
