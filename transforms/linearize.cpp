// linearize: jvp with the tangents in a linear trace. The values that the linear trace captures are
// the residuals. What does not depend on tangents runs once, in the enclosing trace.
// SPDX-License-Identifier: Apache-2.0
#include <plait/transforms/jvp_interpreter.h>

#include <plait/primitives/primitives.h>
#include <plait/rules/prune.h>
#include <plait/trace/sizes.h>
#include <plait/transforms/transforms.h>

namespace plait {
namespace {

struct Linearized {
  using Result = LinearizedJaxpr;
  Flags nonzero_inputs, instantiate;
  bool operator==(const Linearized&) const = default;
};
struct Split {
  using Result = SplitJaxpr;
  Flags inputs;
  bool operator==(const Split&) const = default;
};

// Instantiates the zero tangents of the marked outputs.
void instantiate_outputs(LinearizedJaxpr& jaxprs, const Arrays& outputs,
                         const std::vector<bool>& instantiate) {
  const std::vector<bool> has = jaxprs.nonzero_outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (instantiate[i] && is_differentiable(outputs[i].aval())) jaxprs.nonzero_outputs[i] = true;
  if (has == jaxprs.nonzero_outputs) return;
  const Jaxpr linear = jaxprs.linear;
  jaxprs.linear = make_closed_jaxpr(
      [&](std::span<const Array> inputs) {
        const Arrays tangents = eval_jaxpr(linear, inputs);
        Arrays results;
        std::size_t next = 0;
        for (std::size_t i = 0; i < outputs.size(); ++i) {
          if (has[i])
            results.push_back(tangents[next++]);
          else if (jaxprs.nonzero_outputs[i])
            results.push_back(lax::zeros_like(tangent_aval(outputs[i].aval())));
        }
        return results;
      },
      linear->input_avals(), linear->sizes);
}

// Eliminates dead code in loops of the linear part, and residuals that only the dead code read.
void prune_residuals(LinearizedJaxpr& jaxprs, std::size_t num_outputs) {
  const std::size_t num_residuals = jaxprs.known->outputs.size() - num_outputs;
  const std::size_t num_tangents = std::size_t(jaxprs.linear->num_binders) - num_residuals;
  Flags inputs(num_tangents + num_residuals, false);
  std::fill_n(inputs.begin(), num_tangents, true);
  const auto linear = prune_jaxpr(jaxprs.linear, {}, inputs);
  Flags outputs(num_outputs, true);
  outputs.insert(outputs.end(), linear->inputs.begin() + std::ptrdiff_t(num_tangents),
                 linear->inputs.end());
  jaxprs.linear = linear->jaxpr;
  jaxprs.known = prune_jaxpr(jaxprs.known, outputs)->jaxpr;
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
      TraceScope of_tangents(&linear);
      output_tangents.push_back(as_weak(value.tangent, value.primal.aval()).array());
    }
  }
  Traced traced = linear.close(output_tangents);
  map.jaxpr = std::move(traced.jaxpr);
  map.residuals = std::move(traced.captured);
  return map;
}

std::shared_ptr<const LinearizedJaxpr> linearize_jaxpr(const Jaxpr& jaxpr,
                                                       const std::vector<bool>& nonzero_inputs,
                                                       const std::vector<bool>& instantiate) {
  return jaxpr->memo.get(Linearized{nonzero_inputs, instantiate}, [&] {
    LinearizedJaxpr result;
    const Jaxpr program = prune(jaxpr);
    result.known = make_closed_jaxpr(
        [&](std::span<const Array> primals) {
          flat::LinearMap map = flat::linearize(
              [&](std::span<const Array> inputs) { return eval_jaxpr(program, inputs); }, primals,
              nonzero_inputs);
          result.linear = with_sizes(map.jaxpr, jaxpr->sizes);
          result.nonzero_outputs.assign(map.outputs.size(), false);
          for (int output : map.outputs_with_tangent) result.nonzero_outputs[output] = true;
          if (!instantiate.empty()) instantiate_outputs(result, map.outputs, instantiate);
          Arrays outputs = map.outputs;
          outputs.insert(outputs.end(), map.residuals.begin(), map.residuals.end());
          return outputs;
        },
        jaxpr->input_avals(), jaxpr->sizes);
    prune_residuals(result, jaxpr->outputs.size());
    return result;
  });
}

std::shared_ptr<const SplitJaxpr> split_jaxpr(const Jaxpr& jaxpr, const std::vector<bool>& inputs) {
  return jaxpr->memo.get(Split{inputs}, [&] {
    SplitJaxpr result;
    std::vector<Aval> avals;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!inputs[i]) avals.push_back(jaxpr->avals[i]);
    result.known = make_closed_jaxpr(
        [&](std::span<const Array> known) {
          LinearTrace rest("split");
          Arrays arguments;
          std::size_t next = 0;
          for (std::size_t i = 0; i < inputs.size(); ++i)
            arguments.push_back(inputs[i] ? rest.add_input(jaxpr->avals[i]) : known[next++]);
          Arrays outputs, rest_outputs;
          {
            TraceScope scope(&rest);
            for (const Array& output : eval_jaxpr(jaxpr, arguments)) {
              result.rest_outputs.push_back(rest.owns(output));
              (rest.owns(output) ? rest_outputs : outputs).push_back(output);
            }
          }
          Traced traced = rest.close(rest_outputs);
          result.rest = with_sizes(traced.jaxpr, jaxpr->sizes);
          outputs.insert(outputs.end(), traced.captured.begin(), traced.captured.end());
          return outputs;
        },
        avals, jaxpr->sizes);
    return result;
  });
}

}  // namespace plait
