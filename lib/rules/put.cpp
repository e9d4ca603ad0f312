// See rules/put.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/interpret.h>
#include <plait/rules/put.h>

namespace plait {

namespace {

// A value on the way from an array to a view of it, and the equation that made it from the one
// before; the array itself has none.
struct Step {
  Array value;
  std::shared_ptr<const Step> from = {};
  const Primitive* primitive = nullptr;
  Params params = {};
  std::size_t output = 0;
};

struct StepInterpreter {
  using Value = std::shared_ptr<const Step>;
  Aval aval(const Value& step) const { return step->value.aval(); }
  std::optional<Array> known(const Value& step) const { return step->value; }
  Value lift(const Array& array) const { return std::make_shared<const Step>(Step{array}); }
  std::vector<Value> process(const Equation& equation, std::span<const Value> inputs) const {
    Arrays arrays;
    for (const Value& input : inputs) arrays.push_back(input->value);
    const Arrays results = bind(*equation.primitive, arrays, equation.params);
    std::vector<Value> steps;
    for (std::size_t i = 0; i < results.size(); ++i)
      steps.push_back(std::make_shared<const Step>(
          Step{results[i], inputs[0], equation.primitive, equation.params, i}));
    return steps;
  }
};

}  // namespace

Array put_through(const std::function<Array(const Array& x)>& view, const Array& x,
                  const Array& value) {
  StepInterpreter interpreter;
  OnlineTrace<StepInterpreter> trace("a view", interpreter);
  std::shared_ptr<const Step> step;
  {
    TraceScope scope(&trace);
    step = trace.value_of(view(trace.wrap(interpreter.lift(x))));
  }
  Array result = value;
  for (; step->from; step = step->from)
    result = rule<Put>(*step->primitive)(step->from->value, result, step->output, step->params);
  return result;
}

}  // namespace plait
