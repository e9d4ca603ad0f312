// See bodies.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/argument_names.h>
#include <plait/bodies.h>
#include <plait/ops.h>

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
Aval agreed(const Aval& carry, const Aval& next, std::size_t index, std::string_view name) {
  const std::string what = std::string(name) + ": " + ArgumentNames::of(index) + " has type " +
                           carry.to_string() + " at the start, and the body returns " +
                           next.to_string() + " for it";
  if (!(carry.shape == next.shape))
    throw ShapeError(what, "return the carry with the shape that it came with");
  if (carry.dtype == next.dtype) return {carry.shape, carry.dtype, carry.weak && next.weak};
  if (!carry.weak && !next.weak)
    throw DtypeError(what, "start with a carry of that dtype, or convert with astype");
  const WeakDType common = promote_weak(carry.type(), next.type());
  if (!carry.weak && common.dtype != carry.dtype)
    throw DtypeError(what, "start with a carry of that dtype, or convert with astype");
  return {carry.shape, common.dtype, common.weak};
}

}  // namespace

Traced trace_carried(const Function& body, Arrays& carry, std::span<const Aval> more,
                     std::string_view name) {
  auto converted = [&](std::span<const Array> inputs) {
    Arrays outputs = body(inputs);
    for (std::size_t i = 0; i < carry.size() && i < outputs.size(); ++i)
      if (outputs[i].shape() == carry[i].shape() && outputs[i].aval().weak)
        outputs[i] = lax::convert_element_type(outputs[i], carry[i].dtype(), carry[i].aval().weak);
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
      const Aval wanted = agreed(avals[i], next[i], i, name);
      agree &= next[i] == wanted;
      if (wanted == avals[i]) continue;
      changed = true;
      carry[i] = lax::convert_element_type(carry[i], wanted.dtype, wanted.weak);
    }
    if (changed && attempt < most_attempts) continue;
    return agree ? traced : make_jaxpr(converted, avals, name);
  }
}

}  // namespace plait
