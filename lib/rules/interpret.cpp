// Shared by interpreters: last uses of values, evaluation, decompositions. See rules/interpret.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/interpret.h>
#include <plait/trace/sizes.h>

namespace plait {

std::vector<int> last_uses(const Jaxpr& jaxpr) {
  std::vector<int> last(jaxpr->avals.size(), -1);
  for (std::size_t index = 0; index < jaxpr->equations.size(); ++index)
    for (const Atom& atom : jaxpr->equations[index].inputs)
      if (atom.is_var()) last[atom.var().id] = int(index);
  for (const Atom& atom : jaxpr->outputs)
    if (atom.is_var()) last[atom.var().id] = int(jaxpr->equations.size());
  return last;
}

namespace {

struct EvalInterpreter {
  using Value = Array;
  Array lift(const Array& array) { return array; }
  Arrays process(const Equation& equation, std::span<const Array> inputs) {
    return bind(*equation.primitive, inputs, equation.params);
  }
};

}  // namespace

Arrays eval_jaxpr(const Jaxpr& jaxpr, std::span<const Array> inputs) {
  Arrays values(inputs.begin(), inputs.end());
  if (jaxpr->sizes.empty()) return interpret(EvalInterpreter{}, jaxpr, std::move(values));
  const std::vector<Aval> avals = avals_of(inputs);
  return interpret(EvalInterpreter{}, instantiate_for(jaxpr, avals), std::move(values));
}

Jaxpr decomposition(const Primitive& primitive, std::span<const Aval> inputs,
                    const Params& params) {
  const Decompose::Rule& decompose = rule<Decompose>(primitive);
  const Jaxpr jaxpr = make_closed_jaxpr(
      [&](std::span<const Array> arrays) { return decompose(arrays, params); }, inputs);
  const std::vector<Aval> wanted = infer(primitive, inputs, params), given = jaxpr->output_avals();
  const bool fits = std::equal(
      wanted.begin(), wanted.end(), given.begin(), given.end(),
      [](const Aval& a, const Aval& b) { return a.shape == b.shape && a.dtype == b.dtype; });
  if (!fits) {
    auto text = [](const std::vector<Aval>& avals) {
      std::string all;
      for (const Aval& aval : avals) all += (all.empty() ? "" : ", ") + aval.to_string();
      return "(" + all + ")";
    };
    throw ShapeError("the decomposition of `" + std::string(primitive.name()) + "` gives " +
                         text(given) + " where its abstract rule says " + text(wanted),
                     "return what the abstract rule says");
  }
  return jaxpr;
}

}  // namespace plait
