// custom_jvp and custom_vjp: functions with derivative rules of their own, as calls with entries beside the
// body. Every other transform rewrites body and entries alike (transforms/call.cpp).
// SPDX-License-Identifier: Apache-2.0
#include <plait/ops.h>
#include <plait/transforms.h>

namespace plait {
namespace {

std::vector<Aval> avals_of(std::span<const Array> arrays) {
  std::vector<Aval> avals;
  for (const Array& array : arrays) avals.push_back(array.aval());
  return avals;
}

// What body and rules captured, once each.
void add_captured(const Traced& traced, Arrays& captured) {
  for (const Array& array : traced.captured)
    if (std::none_of(captured.begin(), captured.end(), [&](const Array& other) { return other.is_same(array); }))
      captured.push_back(array);
}

// A traced rule as a jaxpr whose captured arrays are taken from the common list. Operands are those of the
// rule; the captured list's avals follow the first `position` of them.
Jaxpr with_captured(const Traced& traced, const std::vector<Aval>& operands, std::size_t position, const Arrays& captured,
                    const std::vector<std::size_t>& repeats) {
  std::vector<Aval> avals(operands.begin(), operands.begin() + position);
  for (const Array& array : captured) avals.push_back(array.aval());
  avals.insert(avals.end(), operands.begin() + position, operands.end());
  for (std::size_t repeat : repeats) avals.push_back(captured[repeat].aval());
  return make_closed_jaxpr(
      [&](std::span<const Array> inputs) {
        Arrays arguments(inputs.begin(), inputs.begin() + position);
        arguments.insert(arguments.end(), inputs.begin() + position + captured.size(), inputs.begin() + operands.size() + captured.size());
        for (const Array& array : traced.captured)
          for (std::size_t i = 0; i < captured.size(); ++i)
            if (captured[i].is_same(array)) arguments.push_back(inputs[position + i]);
        return eval_jaxpr(traced.jaxpr, arguments);
      },
      avals);
}

void check_output(const char* what, const std::string& name, std::size_t index, const Aval& given, const Aval& wanted) {
  if (given.shape == wanted.shape && given.dtype == wanted.dtype) return;
  throw ShapeError(std::string(what) + " of `" + name + "` returned " + given.to_string() + " as number " + std::to_string(index) +
                       ", where " + wanted.to_string() + " is needed",
                   "return one of the shape and dtype of what it belongs to");
}

}  // namespace

Arrays flat::custom_jvp(const Function& function, const Function& jvp, std::span<const Array> inputs, const std::string& name) {
  const std::vector<Aval> avals = avals_of(inputs);
  const Traced body = make_jaxpr(function, avals, "custom_jvp");
  std::vector<Aval> both = avals;
  both.insert(both.end(), avals.begin(), avals.end());
  const Traced rule = make_jaxpr(jvp, both, "custom_jvp");
  const std::vector<Aval> outputs = body.jaxpr->output_avals(), results = rule.jaxpr->output_avals();
  if (results.size() != 2 * outputs.size())
    throw TreeError("the jvp rule of `" + name + "` returned " + std::to_string(results.size()) + " arrays, and the function has " +
                        std::to_string(outputs.size()) + " outputs",
                    "return a pair: the outputs, and their tangents in the same structure");
  for (std::size_t i = 0; i < results.size(); ++i) check_output("the jvp rule", name, i, results[i], outputs[i % outputs.size()]);
  Arrays captured;
  add_captured(body, captured);
  add_captured(rule, captured);
  // The entry takes primals, captured, tangents, and tangents of captured, which are zero.
  std::vector<std::size_t> repeats(captured.size());
  for (std::size_t i = 0; i < repeats.size(); ++i) repeats[i] = i;
  const Jaxpr entry = with_captured(rule, both, avals.size(), captured, repeats);
  Arrays operands(inputs.begin(), inputs.end());
  operands.insert(operands.end(), captured.begin(), captured.end());
  return call(with_captured(body, avals, avals.size(), captured, {}), operands,
              {{"name", name}, {"jvp", entry}, {"num_captured", Dim(std::int64_t(captured.size()))}});
}

Arrays flat::custom_vjp(const Function& function, const Function& fwd, const Function& bwd, std::span<const Array> inputs,
                        const std::string& name) {
  const std::vector<Aval> avals = avals_of(inputs);
  const Traced body = make_jaxpr(function, avals, "custom_vjp");
  const Traced forward = make_jaxpr(fwd, avals, "custom_vjp");
  const std::vector<Aval> outputs = body.jaxpr->output_avals(), results = forward.jaxpr->output_avals();
  if (results.size() < outputs.size())
    throw TreeError("the fwd rule of `" + name + "` returned " + std::to_string(results.size()) + " arrays, and the function has " +
                        std::to_string(outputs.size()) + " outputs",
                    "return a pair: the outputs, and residuals for bwd");
  for (std::size_t i = 0; i < outputs.size(); ++i) check_output("the fwd rule", name, i, results[i], outputs[i]);
  // bwd takes residuals, then the cotangents of outputs that have one.
  std::vector<Aval> backward_avals(results.begin() + outputs.size(), results.end());
  const std::size_t num_residuals = backward_avals.size();
  for (const Aval& aval : outputs)
    if (is_differentiable(aval)) backward_avals.push_back(tangent_aval(aval));
  std::vector<Aval> wanted;
  const Traced backward = make_jaxpr(
      [&](std::span<const Array> arguments) {
        Arrays all(arguments.begin(), arguments.begin() + num_residuals);
        std::size_t next = num_residuals;
        for (const Aval& aval : outputs) all.push_back(is_differentiable(aval) ? arguments[next++] : lax::zeros_like(aval));
        const Arrays cotangents = bwd(all);
        if (cotangents.size() != avals.size())
          throw TreeError("the bwd rule of `" + name + "` returned " + std::to_string(cotangents.size()) + " cotangents for " +
                              std::to_string(avals.size()) + " inputs",
                          "return one cotangent for each argument, in the structure of the arguments");
        Arrays kept;
        for (std::size_t i = 0; i < avals.size(); ++i) {
          if (!is_differentiable(avals[i])) continue;
          check_output("the bwd rule", name, i, cotangents[i].aval(), avals[i]);
          kept.push_back(cotangents[i]);
        }
        return kept;
      },
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
  return call(with_captured(body, avals, avals.size(), captured, {}), operands,
              {{"name", name}, {"fwd", fwd_entry}, {"bwd", bwd_entry}, {"num_captured", Dim(std::int64_t(captured.size()))}});
}

}  // namespace plait
