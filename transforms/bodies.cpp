// See bodies.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/argument_names.h>
#include <plait/primitives/narrow.h>
#include <plait/primitives/primitives.h>
#include <plait/primitives/widening.h>
#include <plait/transforms/bodies.h>

namespace plait {

Flags dependent_outputs(const Jaxpr& jaxpr, const Flags& inputs) {
  Flags depends(jaxpr->avals.size(), false);
  std::copy(inputs.begin(), inputs.end(), depends.begin());
  auto is_marked = [&](const Atom& atom) { return atom.is_var() && depends[atom.var().id]; };
  for (const Equation& equation : jaxpr->equations)
    if (std::any_of(equation.inputs.begin(), equation.inputs.end(), is_marked))
      for (Var var : equation.outputs) depends[var.id] = true;
  Flags outputs;
  for (const Atom& atom : jaxpr->outputs) outputs.push_back(is_marked(atom));
  return outputs;
}

Jaxpr without_effects(const Jaxpr& jaxpr) {
  if (!jaxpr->effectful) return jaxpr;
  struct WithoutEffects : Property<Jaxpr> {};
  return *jaxpr->memo.get(WithoutEffects{}, [&] {
    Builder builder;
    std::vector<Atom> values;
    for (const Aval& aval : jaxpr->input_avals()) values.push_back(builder.add_binder(aval));
    values.resize(jaxpr->avals.size(), Atom(Var{}));
    auto read = [&](const Atom& atom) { return atom.is_var() ? values[atom.var().id] : atom; };
    for (const Equation& equation : jaxpr->equations) {
      if (equation.primitive->is_effectful()) {
        if (equation.outputs.empty()) continue;
        SourceScope scope(equation.source);
        throw MissingRuleError("checkpoint: `" + std::string(equation.primitive->name()) +
                                   "` has an effect and results, in a loop or branch that is " +
                                   "computed again, where the effect would happen twice",
                               "leave the checkpoint out, or call it outside of the loop");
      }
      std::vector<Atom> inputs;
      std::vector<Aval> avals;
      for (const Atom& atom : equation.inputs) inputs.push_back(read(atom));
      for (Var var : equation.outputs) avals.push_back(jaxpr->aval(var));
      const std::vector<Var> outputs =
          builder.add(*equation.primitive, std::move(inputs), without_effects(equation.params),
                      equation.source, std::move(avals));
      for (std::size_t i = 0; i < outputs.size(); ++i) values[equation.outputs[i].id] = outputs[i];
    }
    for (const Constraint& constraint : jaxpr->constraints) builder.add_constraint(constraint);
    std::vector<Atom> outputs;
    for (const Atom& atom : jaxpr->outputs) outputs.push_back(read(atom));
    return builder.close(std::move(outputs), jaxpr->sizes);
  });
}

Params without_effects(const Params& params) {
  return map_bodies(params, [](const Jaxpr& body) { return without_effects(body); });
}

SizeValues from_outside(const SizeValues& sizes) {
  Trace* const outside = Trace::current();
  SizeValues result = sizes;
  result.value = [&sizes, outside](Dim dim) {
    TraceScope scope(outside);
    return sizes.value(dim);
  };
  return result;
}

static constinit BodyGuard installed_guard = nullptr;
void set_body_guard(BodyGuard guard) { installed_guard = guard; }
Jaxpr guarded_body(const Jaxpr& body) {
  if (!installed_guard) throw InternalError("control flow, which guards bodies, is not linked");
  return installed_guard(body);
}

}  // namespace plait
