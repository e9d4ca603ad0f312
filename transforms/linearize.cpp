// linearize: jvp with the tangents in a linear trace. What the linear trace captures from outside
// are the residuals; everything that does not depend on tangents runs once, in the enclosing trace.
// SPDX-License-Identifier: Apache-2.0
#include <plait/jvp_interpreter.h>

#include <plait/ops.h>
#include <plait/sizes.h>
#include <plait/transforms.h>

namespace plait {
namespace {

std::string key(const char* name, const std::vector<bool>& flags) {
  std::string text = name;
  for (bool flag : flags) text += flag ? '1' : '0';
  return text;
}

}  // namespace

flat::LinearMap flat::linearize(const Function& function, std::span<const Array> primals,
                                const std::vector<bool>& wrt) {
  LinearTrace linear("linearize");
  LinearMap map;
  Arrays tangents;
  for (std::size_t i = 0; i < primals.size(); ++i) {
    if (!wrt[i] || !is_differentiable(primals[i].aval())) continue;
    map.inputs.push_back(int(i));
    tangents.push_back(linear.add_input(tangent_aval(primals[i].aval())));
  }
  JvpInterpreter interpreter{&linear, {}};
  Arrays output_tangents;
  {
    TraceScope linear_scope(&linear);
    OnlineTrace trace("linearize", interpreter);
    Arrays arguments(primals.begin(), primals.end());
    for (std::size_t i = 0; i < map.inputs.size(); ++i)
      arguments[map.inputs[i]] = trace.wrap({primals[map.inputs[i]], tangents[i]});
    TraceScope scope(&trace);
    const Arrays outputs = function(arguments);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const JvpInterpreter::Value value = trace.value_of(outputs[i]);
      map.outputs.push_back(value.primal);
      if (value.tangent.is_zero()) continue;
      map.outputs_with_tangent.push_back(int(i));
      output_tangents.push_back(value.tangent.array());
    }
  }
  Traced traced = linear.close(output_tangents);
  map.jaxpr = std::move(traced.jaxpr);
  map.residuals = std::move(traced.captured);
  return map;
}

std::shared_ptr<const JvpJaxpr> linearize_jaxpr(const Jaxpr& jaxpr,
                                                const std::vector<bool>& nonzero_inputs) {
  return std::static_pointer_cast<const JvpJaxpr>(
      jaxpr->memo.get(key("linearize ", nonzero_inputs), [&]() -> std::shared_ptr<const void> {
        auto result = std::make_shared<JvpJaxpr>();
        std::size_t num_residuals = 0;
        result->known = make_closed_jaxpr(
            [&](std::span<const Array> primals) {
              flat::LinearMap map = flat::linearize(
                  [&](std::span<const Array> inputs) { return eval_jaxpr(jaxpr, inputs); }, primals,
                  nonzero_inputs);
              result->linear = with_sizes(map.jaxpr, jaxpr->sizes);
              num_residuals = map.residuals.size();
              result->nonzero_outputs.assign(map.outputs.size(), false);
              for (int output : map.outputs_with_tangent) result->nonzero_outputs[output] = true;
              Arrays outputs = map.outputs;
              outputs.insert(outputs.end(), map.residuals.begin(), map.residuals.end());
              return outputs;
            },
            jaxpr->input_avals(), jaxpr->sizes);
        return result;
      }));
}

}  // namespace plait
