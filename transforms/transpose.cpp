// transpose: runs a linear jaxpr backwards, from cotangents of outputs to cotangents of inputs; and
// vjp, which is linearize followed by transpose.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/mesh.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/interpret.h>
#include <plait/transforms/jvp_interpreter.h>
#include <plait/transforms/transforms.h>

namespace plait {
namespace {

// Reverse mode computes cotangents, not tangents.
[[noreturn]] void throw_effect_on_tangents(const Equation& equation) {
  SourceScope scope(equation.source);
  throw MissingRuleError("`" + std::string(equation.primitive->name()) +
                             "` acts on tangents, which reverse mode does not compute",
                         "leave the effect out of the jvp rule, or give it primal values");
}

// What places of a mesh share gets the sum of what each of them gives back. Operations see to it by
// pvary; rules of users and of programs that hold others may give what varies.
Tangent summed_over_places(const Tangent& cotangent, const Aval& of) {
  if (cotangent.is_zero()) return cotangent;
  const MeshAxes more = cotangent.aval().varying.without(of.varying);
  if (more.empty()) return cotangent;
  Array sum = cotangent.array();
  for (const MeshAxis& axis : more.axes()) sum = places::reduce(sum, "sum", axis);
  return sum;
}

}  // namespace

Tangents transpose_equation(const Equation& equation, std::span<const TransposeInput> inputs,
                            std::span<const Tangent> cotangents) {
  if (const Transpose::Rule* transpose = Transpose::table().find(*equation.primitive))
    return (*transpose)(cotangents, inputs, equation.params);
  if (!Decompose::table().find(*equation.primitive))
    throw_missing_rule(Transpose::table(), *equation.primitive);
  const std::vector<Aval> avals = avals_of(inputs);
  return flat::transpose(decomposition(*equation.primitive, avals, equation.params), inputs,
                         cotangents);
}

std::optional<Array> accumulated_cotangent(const Array& sum, const Equation& equation,
                                           std::span<const TransposeInput> inputs,
                                           std::span<const Tangent> cotangents) {
  const Accumulate::Rule* accumulate = Accumulate::table().find(*equation.primitive);
  if (!accumulate || !inputs[0].is_linear() || cotangents.size() != 1 || cotangents[0].is_zero())
    return std::nullopt;
  for (const TransposeInput& input : inputs.subspan(1))
    if (input.is_linear()) return std::nullopt;
  const Aval &aval = inputs[0].aval(), &of_sum = sum.aval();
  const DType dtype = cotangents[0].aval().dtype;
  if (of_sum.shape != aval.shape || of_sum.dtype != dtype || of_sum.stack != aval.stack)
    return std::nullopt;
  return (*accumulate)(sum, cotangents[0].array(), inputs, equation.params);
}

Tangents flat::transpose(const Jaxpr& jaxpr, std::span<const TransposeInput> inputs,
                         std::span<const Tangent> cotangents, std::span<const Tangent> sums) {
  const std::size_t num_vars = jaxpr->avals.size();
  std::vector<Array> known(num_vars);
  std::vector<char> linear(num_vars, 0);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_linear())
      linear[i] = 1;
    else
      known[i] = inputs[i].known();
  }
  auto is_linear = [&](const Atom& atom) { return atom.is_var() && linear[atom.var().id]; };
  auto read = [&](const Atom& atom) {
    return atom.is_var() ? known[atom.var().id] : Array::literal(atom.literal());
  };
  for (const Equation& equation : jaxpr->equations) {
    if (std::any_of(equation.inputs.begin(), equation.inputs.end(), is_linear)) {
      for (Var var : equation.outputs) linear[var.id] = 1;
      continue;
    }
    SourceScope scope(equation.source);
    Arrays arguments;
    for (const Atom& atom : equation.inputs) arguments.push_back(read(atom));
    Arrays outputs = bind(*equation.primitive, arguments, equation.params);
    for (std::size_t i = 0; i < outputs.size(); ++i) known[equation.outputs[i].id] = outputs[i];
  }

  std::vector<std::optional<Tangent>> environment(num_vars);
  auto accumulate = [&](const Atom& atom, const Tangent& cotangent) {
    if (!is_linear(atom) || cotangent.is_zero()) return;
    std::optional<Tangent>& slot = environment[atom.var().id];
    slot = slot ? add_tangents(*slot, cotangent) : cotangent;
  };
  for (std::size_t i = 0; i < sums.size(); ++i) accumulate(Var{int(i)}, sums[i]);
  for (std::size_t i = 0; i < jaxpr->outputs.size(); ++i)
    accumulate(jaxpr->outputs[i], cotangents[i]);
  for (std::size_t index = jaxpr->equations.size(); index-- > 0;) {
    const Equation& equation = jaxpr->equations[index];
    if (std::none_of(equation.inputs.begin(), equation.inputs.end(), is_linear)) continue;
    if (equation.primitive->is_effectful()) throw_effect_on_tangents(equation);
    Tangents outputs;
    bool nonzero = false;
    for (Var var : equation.outputs) {
      outputs.push_back(environment[var.id].value_or(Tangent(jaxpr->aval(var))));
      nonzero |= !outputs.back().is_zero();
      environment[var.id].reset();
    }
    if (!nonzero) continue;
    SourceScope scope(equation.source.under("transpose"));
    std::vector<TransposeInput> arguments;
    for (const Atom& atom : equation.inputs)
      arguments.push_back(is_linear(atom) ? TransposeInput(jaxpr->aval(atom))
                                          : TransposeInput(read(atom)));
    if (is_linear(equation.inputs[0]))
      if (std::optional<Tangent>& slot = environment[equation.inputs[0].var().id])
        if (const std::optional<Array> sum =
                accumulated_cotangent(slot->array(), equation, arguments, outputs)) {
          slot = *sum;
          continue;
        }
    const Tangents results = transpose_equation(equation, arguments, outputs);
    for (std::size_t i = 0; i < results.size(); ++i)
      accumulate(equation.inputs[i], summed_over_places(results[i], arguments[i].aval()));
  }
  Tangents results;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    results.push_back(environment[i].value_or(Tangent(inputs[i].aval())));
  return results;
}

flat::Pullback flat::vjp(const Function& function, std::span<const Array> primals,
                         const std::vector<bool>& wrt) {
  auto map = std::make_shared<LinearMap>(linearize(function, primals, wrt));
  const std::vector<Aval> avals = avals_of(primals);
  Pullback pullback{map->outputs, {}};
  pullback.pull = [map, avals, wrt](std::span<const Tangent> cotangents) {
    std::vector<TransposeInput> inputs;
    for (int input : map->inputs) inputs.push_back(TransposeInput(tangent_aval(avals[input])));
    for (const Array& residual : map->residuals) inputs.push_back(residual);
    Tangents of_outputs;
    for (int output : map->outputs_with_tangent) of_outputs.push_back(cotangents[output]);
    const Tangents linear = transpose(map->jaxpr, inputs, of_outputs);
    Tangents results;
    std::size_t next = 0;
    for (std::size_t i = 0; i < avals.size(); ++i) {
      if (!wrt[i]) continue;
      const bool has = next < map->inputs.size() && map->inputs[next] == int(i);
      results.push_back(has ? as_weak(linear[next++], avals[i]) : Tangent(avals[i]));
    }
    return results;
  };
  return pullback;
}

std::shared_ptr<const TransposedJaxpr> transpose_jaxpr(const Jaxpr& jaxpr,
                                                       const std::vector<bool>& linear_inputs,
                                                       const std::vector<bool>& nonzero_cotangents,
                                                       const std::vector<bool>& sums) {
  struct Transposed {
    using Result = TransposedJaxpr;
    std::vector<bool> linear_inputs, nonzero_cotangents, sums;
    bool operator==(const Transposed&) const = default;
  };
  return jaxpr->memo.get(Transposed{linear_inputs, nonzero_cotangents, sums}, [&] {
    TransposedJaxpr result;
    std::vector<Aval> avals;
    for (std::size_t i = 0; i < linear_inputs.size(); ++i)
      if (!linear_inputs[i]) avals.push_back(jaxpr->avals[i]);
    const std::vector<Aval> outputs = jaxpr->output_avals();
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (nonzero_cotangents[i]) avals.push_back(outputs[i]);
    for (std::size_t i = 0; i < sums.size(); ++i)
      if (sums[i]) avals.push_back(jaxpr->avals[i]);
    result.jaxpr = make_closed_jaxpr(
        [&](std::span<const Array> arguments) {
          std::size_t next = 0;
          std::vector<TransposeInput> inputs;
          for (std::size_t i = 0; i < linear_inputs.size(); ++i)
            inputs.push_back(linear_inputs[i] ? TransposeInput(jaxpr->avals[i])
                                              : TransposeInput(arguments[next++]));
          Tangents cotangents;
          for (std::size_t i = 0; i < outputs.size(); ++i)
            cotangents.push_back(nonzero_cotangents[i] ? Tangent(arguments[next++])
                                                       : Tangent(outputs[i]));
          Tangents added;
          for (std::size_t i = 0; i < sums.size(); ++i)
            added.push_back(sums[i] ? Tangent(arguments[next++]) : Tangent(jaxpr->avals[i]));
          Arrays results;
          const Tangents of_inputs = flat::transpose(jaxpr, inputs, cotangents, added);
          for (std::size_t i = 0; i < of_inputs.size(); ++i) {
            if (!linear_inputs[i]) continue;
            result.nonzero_inputs.push_back(!of_inputs[i].is_zero());
            if (!of_inputs[i].is_zero()) results.push_back(of_inputs[i].array());
          }
          return results;
        },
        avals, jaxpr->sizes);
    return result;
  });
}

}  // namespace plait
