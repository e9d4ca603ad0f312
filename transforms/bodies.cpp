// See bodies.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/argument_names.h>
#include <plait/bodies.h>
#include <plait/narrow.h>
#include <plait/ops.h>
#include <plait/widening.h>

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

Flags mark_tangents(const Jaxpr& body, Flags& inputs, std::size_t num_carry, bool is_forward) {
  for (;;) {
    Flags explicit_outputs(body->outputs.size(), false);
    std::copy_n(inputs.begin(), num_carry, explicit_outputs.begin());
    const Flags next = is_forward
                           ? jvp_jaxpr(body, inputs, explicit_outputs)->nonzero_outputs
                           : linearize_jaxpr(body, inputs, explicit_outputs)->nonzero_outputs;
    if (!widen(inputs, next, num_carry)) return explicit_outputs;
  }
}

Invariants eval_invariants(const Jaxpr& body, std::size_t num_varying, std::size_t first_output,
                           std::span<const Array> consts) {
  Flags varies(body->avals.size(), false);
  std::fill_n(varies.begin(), num_varying, true);
  auto does_vary = [&](const Atom& atom) { return atom.is_var() && varies[atom.var().id]; };
  for (const Equation& equation : body->equations)
    if (is_effectful(equation) ||
        std::any_of(equation.inputs.begin(), equation.inputs.end(), does_vary))
      for (Var var : equation.outputs) varies[var.id] = true;
  Invariants result;
  Flags needed(body->avals.size(), false);
  auto need = [&](const Atom& atom) {
    if (atom.is_var()) needed[atom.var().id] = true;
  };
  for (std::size_t i = first_output; i < body->outputs.size(); ++i) {
    result.is_invariant.push_back(!does_vary(body->outputs[i]));
    if (result.is_invariant.back()) need(body->outputs[i]);
  }
  auto is_needed = [&](const Equation& equation) {
    return std::any_of(equation.outputs.begin(), equation.outputs.end(),
                       [&](Var var) { return needed[var.id]; });
  };
  for (auto equation = body->equations.rbegin(); equation != body->equations.rend(); ++equation)
    if (is_needed(*equation)) std::for_each(equation->inputs.begin(), equation->inputs.end(), need);
  Arrays values(body->avals.size());
  std::copy(consts.begin(), consts.end(), values.begin() + std::ptrdiff_t(num_varying));
  auto read = [&](const Atom& atom) {
    return atom.is_var() ? values[atom.var().id] : Array::literal(atom.literal());
  };
  for (const Equation& equation : body->equations) {
    if (!is_needed(equation)) continue;
    SourceScope scope(equation.source);
    Arrays inputs;
    for (const Atom& atom : equation.inputs) inputs.push_back(read(atom));
    const Arrays outputs = bind(*equation.primitive, inputs, equation.params);
    for (std::size_t i = 0; i < outputs.size(); ++i) values[equation.outputs[i].id] = outputs[i];
  }
  for (std::size_t i = first_output; i < body->outputs.size(); ++i)
    if (result.is_invariant[i - first_output]) result.values.push_back(read(body->outputs[i]));
  return result;
}

Jaxpr without_effects(const Jaxpr& jaxpr) {
  if (!jaxpr->effectful) return jaxpr;
  return *memoised<Jaxpr>(jaxpr, "without effects", [&] {
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

namespace {

// The type that a carry has from now on: its own, or a wider one where it or the body's is weak.
Aval agreed(const Aval& carry, const Jaxpr& body, std::size_t index, std::string_view name) {
  const Aval next = body->aval(body->outputs[index]);
  auto what = [&] {
    return std::string(name) + ": " + ArgumentNames::of(index) + " has type " + carry.to_string() +
           " at the start, and the body returns " + next.to_string() + " for it";
  };
  if (!(carry.shape == next.shape))
    throw ShapeError(what(), "return the carry with the shape that it came with");
  if (carry.dtype == next.dtype) return {carry.shape, carry.dtype, carry.weak && next.weak};
  auto refuse = [&] {
    throw DtypeError(what() + where_it_widens(body, body->outputs[index], carry.dtype),
                     "start with a carry of that dtype, or convert with astype");
  };
  if (!carry.weak && !next.weak) refuse();
  const WeakDType common = promote_weak(carry.type(), next.type());
  if (!carry.weak && common.dtype != carry.dtype) refuse();
  return {carry.shape, common.dtype, common.weak};
}

}  // namespace

Traced trace_carried(const Function& body, Arrays& carry, std::span<const Aval> more,
                     std::string_view name) {
  auto converted = [&](std::span<const Array> inputs) {
    Arrays outputs = body(inputs);
    for (std::size_t i = 0; i < carry.size() && i < outputs.size(); ++i)
      if (outputs[i].shape() == carry[i].shape() && outputs[i].aval().weak)
        outputs[i] = narrowed(outputs[i], carry[i].dtype(), carry[i].aval().weak, name);
    return outputs;
  };
  constexpr int most_attempts = 4;  // weak, then strong, then wider
  for (int attempt = 0;; ++attempt) {
    std::vector<Aval> avals = avals_of(carry);
    avals.insert(avals.end(), more.begin(), more.end());
    std::vector<Aval> next;
    Traced traced = make_jaxpr(
        [&](std::span<const Array> inputs) {
          const Arrays outputs = body(inputs);
          if (outputs.size() < carry.size())
            throw TreeError(std::string(name) + ": the body returns " +
                                std::to_string(outputs.size()) + " arrays for a carry of " +
                                std::to_string(carry.size()),
                            "return the carry first, with as many leaves");
          next = avals_of(outputs);
          return outputs;
        },
        avals, name);
    bool agree = true, changed = false;
    for (std::size_t i = 0; i < carry.size(); ++i) {
      const Aval wanted = agreed(avals[i], traced.jaxpr, i, name);
      agree &= next[i] == wanted;
      if (wanted == avals[i]) continue;
      changed = true;
      carry[i] = yielded(carry[i], wanted.dtype, wanted.weak, name);
    }
    if (changed && attempt < most_attempts) continue;
    return agree ? traced : make_jaxpr(converted, avals, name);
  }
}

}  // namespace plait
