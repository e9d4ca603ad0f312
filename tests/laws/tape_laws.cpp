// Laws of the tape. See laws.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/inspect/tolerance.h>
#include "laws.h"

namespace plait::laws {
namespace {

std::vector<bool> real_inputs(const Case& one) {
  std::vector<bool> flags;
  for (const Sample::Input& input : one.inputs) flags.push_back(is_floating(input.aval.dtype));
  return flags;
}

Arrays as_variables(const Arrays& values, const std::vector<bool>& wrt) {
  Arrays variables = values;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (wrt[i]) variables[i] = variable(values[i]);
  return variables;
}

// Cotangents of one output alone.
Tangents only(const Arrays& outputs, std::size_t chosen, const Array& cotangent) {
  Tangents cotangents;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    cotangents.push_back(i == chosen ? Tangent(cotangent) : Tangent(outputs[i].aval()));
  return cotangents;
}

Arrays instantiated(const Tangents& tangents) {
  Arrays arrays;
  for (const Tangent& tangent : tangents) arrays.push_back(tangent.instantiate());
  return arrays;
}

// What backward has left at the variables, and resets it; of those it did not reach, zeros.
Arrays taken_gradients(const Arrays& variables, const std::vector<bool>& wrt) {
  Arrays gradients;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (!wrt[i]) continue;
    gradients.push_back(grad_of(variables[i]).value_or(Tangent(variables[i].aval()).instantiate()));
    set_grad(variables[i], std::nullopt);
  }
  return gradients;
}

// The sum of products with fixed numbers, on the tape.
Array weighed(const Arrays& arrays, unsigned seed) {
  Array sum = Array::literal(0, DType::float64);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const Array product = arrays[i] * normal_like(arrays[i].aval(), seed + unsigned(i));
    sum = sum + lax::convert_element_type(numpy::sum(product), DType::float64);
  }
  return sum;
}

}  // namespace

Verdict tape_is_vjp(const Case& one) {
  const std::vector<bool> wrt = real_inputs(one);
  if (std::find(wrt.begin(), wrt.end(), true) == wrt.end()) return std::nullopt;
  const Arrays primals = one.values();
  const flat::Pullback pullback = flat::vjp(one.function(), primals, wrt);
  const Arrays variables = as_variables(primals, wrt), outputs = one(variables);
  if (auto found = difference_in_results(one, outputs, pullback.outputs))
    return "the value on the tape: " + *found;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (!is_differentiable(outputs[k].aval())) continue;
    const Array cotangent = normal_like(outputs[k].aval(), 900 + unsigned(k));
    const Tangents pulled = pullback.pull(only(pullback.outputs, k, cotangent));
    if (requires_grad(outputs[k])) backward(outputs[k], {cotangent, /*retain_graph=*/true});
    if (auto found = difference_in_bits(taken_gradients(variables, wrt), instantiated(pulled)))
      return "the gradient of result " + std::to_string(k) + ": " + *found;
  }
  return std::nullopt;
}

Verdict recorded_gradient_is_vjp(const Case& one) {
  const std::vector<bool> wrt = real_inputs(one);
  if (std::find(wrt.begin(), wrt.end(), true) == wrt.end()) return std::nullopt;
  const Arrays primals = one.values();
  const Arrays variables = as_variables(primals, wrt);
  const std::size_t num_outputs = one(primals).size();
  for (std::size_t k = 0; k < num_outputs; ++k) {
    const Arrays outputs = one(variables);  // recorded anew: backward frees what was kept
    if (!is_differentiable(outputs[k].aval()) || !requires_grad(outputs[k])) continue;
    const Array cotangent = normal_like(outputs[k].aval(), 900 + unsigned(k));
    const Function penalty = [&](std::span<const Array> inputs) {
      const flat::Pullback pullback = flat::vjp(one.function(), inputs, wrt);
      return Arrays{
          weighed(instantiated(pullback.pull(only(pullback.outputs, k, cotangent))), 950)};
    };
    const flat::Pullback expected = flat::vjp(penalty, primals, wrt);
    backward(outputs[k], {cotangent, false, /*create_graph=*/true});
    const Array sum = weighed(taken_gradients(variables, wrt), 950);
    if (requires_grad(sum)) backward(sum);
    const Arrays wanted = instantiated(expected.pull(Tangents{Array::literal(1, DType::float64)}));
    if (auto found = difference(taken_gradients(variables, wrt), wanted))
      return "the gradient of the gradient of result " + std::to_string(k) + ": " + *found;
  }
  return std::nullopt;
}

}  // namespace plait::laws
