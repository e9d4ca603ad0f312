// Interpreters: a transform is an interpreter of one equation at a time.
//
// An interpreter has a type Value, lift (a constant array to a Value) and process (one equation on
// Values). interpret() feeds it a closed jaxpr; OnlineTrace feeds it from bind while user code
// runs. The Arrays inside Values belong to the enclosing trace, so interpreters nest, and running
// one under make_jaxpr gives a jaxpr again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/rules.h>

namespace plait {

// The last equation that uses each var, so that values are freed as early as possible.
std::vector<int> last_uses(const Jaxpr& jaxpr);

// Runs a jaxpr's equations through bind, in the current trace. The values of its sizes are solved
// from the inputs' shapes.
Arrays eval_jaxpr(const Jaxpr& jaxpr, std::span<const Array> inputs);

// The decomposition of an equation as a jaxpr, traced anew by each call.
Jaxpr decomposition(const Primitive& primitive, std::span<const Aval> inputs, const Params& params);

// Mixin for an interpreter whose rules are those of Kind: a primitive without a rule is decomposed.
template <class Kind>
struct Decomposing {
  static bool has_rule(const Primitive& primitive) {
    return Kind::table().find(primitive) || !Decompose::table().find(primitive);
  }
  static const typename Kind::Rule& rule_of(const Equation& equation) {
    return rule<Kind>(*equation.primitive);
  }
};

namespace detail {
// An interpreter that has a name records it in the source of the equations that it makes.
template <class Interpreter>
Source rewritten_by(const Interpreter&, const Source& source) {
  if constexpr (requires { std::decay_t<Interpreter>::name; })
    return source.under(std::decay_t<Interpreter>::name);
  else
    return source;
}
}  // namespace detail

template <class Interpreter>
auto interpret(Interpreter&& interpreter, const Jaxpr& jaxpr,
               std::vector<typename std::decay_t<Interpreter>::Value> inputs)
    -> std::vector<typename std::decay_t<Interpreter>::Value>;

// Processes one equation, directly or through its decomposition.
template <class Interpreter, class Avals>
auto process_equation(Interpreter& interpreter, const Equation& equation,
                      std::span<const typename Interpreter::Value> values,
                      const Avals& input_avals) {
  if constexpr (requires { interpreter.has_rule(*equation.primitive); })
    if (!interpreter.has_rule(*equation.primitive))
      return interpret(interpreter,
                       decomposition(*equation.primitive, input_avals(), equation.params),
                       {values.begin(), values.end()});
  return interpreter.process(equation, values);
}

template <class Interpreter>
auto interpret(Interpreter&& interpreter, const Jaxpr& jaxpr,
               std::vector<typename std::decay_t<Interpreter>::Value> inputs)
    -> std::vector<typename std::decay_t<Interpreter>::Value> {
  using Value = typename std::decay_t<Interpreter>::Value;
  std::vector<std::optional<Value>> environment(jaxpr->avals.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) environment[i] = std::move(inputs[i]);
  const std::vector<int> last = last_uses(jaxpr);
  auto read = [&](const Atom& atom) -> Value {
    return atom.is_var() ? *environment[atom.var().id]
                         : interpreter.lift(Array::literal(atom.literal()));
  };
  std::vector<Value> values;
  for (std::size_t index = 0; index < jaxpr->equations.size(); ++index) {
    const Equation& equation = jaxpr->equations[index];
    SourceScope scope(detail::rewritten_by(interpreter, equation.source));
    values.clear();
    for (const Atom& atom : equation.inputs) values.push_back(read(atom));
    for (const Atom& atom : equation.inputs)
      if (atom.is_var() && last[atom.var().id] == int(index)) environment[atom.var().id].reset();
    std::vector<Value> outputs =
        process_equation(interpreter, equation, std::span<const Value>(values), [&] {
          std::vector<Aval> avals;
          for (const Atom& atom : equation.inputs) avals.push_back(jaxpr->aval(atom));
          return avals;
        });
    for (std::size_t i = 0; i < outputs.size(); ++i)
      environment[equation.outputs[i].id] = std::move(outputs[i]);
  }
  std::vector<Value> results;
  for (const Atom& atom : jaxpr->outputs) results.push_back(read(atom));
  return results;
}

// A tracer of an online interpreter.
template <class Value>
class ValueNode final : public ArrayNode {
 public:
  ValueNode(Aval aval, const Trace* trace, Value kept)
      : ArrayNode(std::move(aval), trace), value(std::move(kept)) {}
  const Value value;
};

// Feeds an interpreter from bind. Besides lift and process the interpreter has aval(Value), and may
// have known(Value) -> optional<Array> of the enclosing trace.
template <class Interpreter>
class OnlineTrace final : public Trace {
 public:
  using Value = typename Interpreter::Value;
  OnlineTrace(std::string_view name, Interpreter& interpreter)
      : Trace(name), interpreter_(interpreter) {}

  Array wrap(Value value) {
    Aval aval = interpreter_.aval(value);  // before the value is moved
    return adopt(new ValueNode<Value>(std::move(aval), this, std::move(value)));
  }
  Value value_of(const Array& array) {
    if (owns(array)) return static_cast<const ValueNode<Value>*>(array.node())->value;
    check_alive(array);
    return interpreter_.lift(array);
  }

  Arrays bind(const Primitive& primitive, std::span<const Array> inputs,
              const Params& params) override {
    TraceScope scope(parent());
    bool is_mine = false;
    if constexpr (requires { interpreter_.wants(primitive, params); })
      is_mine = interpreter_.wants(primitive, params);  // whatever its inputs are
    for (const Array& input : inputs) is_mine |= owns(input);
    if (!is_mine) return plait::bind(primitive, inputs, params);
    std::vector<Value> values;
    values.reserve(inputs.size());
    for (const Array& input : inputs) values.push_back(value_of(input));
    Equation equation{&primitive, {}, params, {}, {}};
    std::vector<Value> outputs =
        process_equation(interpreter_, equation, std::span<const Value>(values), [&] {
          std::vector<Aval> avals;
          for (const Array& input : inputs) avals.push_back(input.aval());
          return avals;
        });
    Arrays results;
    results.reserve(outputs.size());
    for (Value& output : outputs) results.push_back(wrap(std::move(output)));
    return results;
  }
  std::optional<Array> known(const ArrayNode& tracer) const override {
    const Value& value = static_cast<const ValueNode<Value>&>(tracer).value;
    if constexpr (requires { interpreter_.known(value); }) return interpreter_.known(value);
    return std::nullopt;
  }
  std::string why_unknown() const override {
    if constexpr (requires { interpreter_.why_unknown(); }) return interpreter_.why_unknown();
    return "its value is not known while " + std::string(name()) + " runs";
  }

 private:
  Interpreter& interpreter_;
};

}  // namespace plait
