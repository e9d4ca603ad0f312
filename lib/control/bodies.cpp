// Shared by the blocks of control flow. See bodies.h.
// SPDX-License-Identifier: Apache-2.0
#include "control/bodies.h"

#include <plait/base/argument_names.h>
#include <plait/primitives/mesh.h>
#include <plait/primitives/narrow.h>
#include <plait/primitives/primitives.h>
#include <plait/primitives/widening.h>
#include <plait/rules/interpret.h>
#include <plait/trace/varying.h>

namespace plait {
namespace {

std::string text_of(std::span<const Aval> avals) {
  std::string text;
  for (const Aval& aval : avals) text += (text.empty() ? "" : ", ") + aval.to_string();
  return "(" + text + ")";
}

bool is_like(const Aval& given, const Aval& wanted) {
  return given.shape == wanted.shape && given.dtype == wanted.dtype && given.stack == wanted.stack;
}

}  // namespace

void require_inputs(const char* name, std::span<const Aval> given, std::span<const Aval> wanted,
                    const Jaxpr& body) {
  if (!std::equal(given.begin(), given.end(), wanted.begin(), wanted.end(), is_like))
    throw InternalError(std::string(name) + ": operands " + text_of(given) + " where " +
                        text_of(wanted) + " are needed by\n" + print(body));
}

std::shared_ptr<const PrunedJaxpr> prune_loop(const Jaxpr& body, Flags& outputs,
                                              std::size_t num_carry, Flags inputs) {
  for (;;) {
    std::copy_n(outputs.begin(), num_carry, inputs.begin());
    auto pruned = prune_jaxpr(body, outputs, inputs);
    if (!widen(outputs, pruned->inputs, num_carry)) return pruned;
  }
}

Params open_bodies(const Params& params) {
  const ParamValue* sizes = params.find("sizes");
  if (!sizes) return params;
  const Shape& values = std::get<Shape>(*sizes);
  return map_bodies(params,
                    [&](const Jaxpr& body) {
                      std::vector<std::pair<Dim, Dim>> replacements;
                      if (values.size() != body->sizes.size())
                        throw InternalError(std::to_string(values.size()) +
                                            " values for the sizes of\n" + print(body));
                      bool trivial = true;
                      for (std::size_t i = 0; i < body->sizes.size(); ++i) {
                        replacements.emplace_back(body->sizes[i], values[i]);
                        trivial &= body->sizes[i] == values[i];
                      }
                      return trivial ? body : instantiate(body, replacements);
                    })
      .without("sizes");
}

Params close_bodies(const Params& params) {
  std::vector<Dim> sizes;
  for_each_body(params, [&](const Jaxpr& body) {
    collect_sizes(Shape(body->sizes.begin(), body->sizes.end()), sizes);
  });
  if (sizes.empty()) return params;
  return map_bodies(params, [&](const Jaxpr& body) { return with_sizes(body, sizes); })
      .with("sizes", Shape(sizes.begin(), sizes.end()));
}

// --- Loops ---------------------------------------------------------------------------------------

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

namespace {

Aval agreed_type(const Aval& carry, const Jaxpr& body, std::size_t index, std::string_view name) {
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

// The type of a carry in the loop: its own, or the promoted type where it or the body's is weak. It
// varies along the axes of a mesh along which either does.
Aval agreed(const Aval& carry, const Jaxpr& body, std::size_t index, std::string_view name) {
  Aval aval = agreed_type(carry, body, index, name);
  aval.varying = carry.varying | body->aval(body->outputs[index]).varying;
  return aval;
}

}  // namespace

Jaxpr differing(const Jaxpr& program, Arrays& operands, MeshAxes axes) {
  if (axes.empty()) return program;
  for (Array& operand : operands) operand = varying_along(operand, axes);
  return make_closed_jaxpr(
      [&](std::span<const Array> inputs) { return eval_jaxpr(program, inputs); },
      avals_of(operands), program->sizes);
}

Traced trace_carried(const Function& body, Arrays& carry, std::span<const Aval> more,
                     std::string_view name) {
  auto converted = [&](std::span<const Array> inputs) {
    Arrays outputs = body(inputs);
    for (std::size_t i = 0; i < carry.size() && i < outputs.size(); ++i)
      if (outputs[i].shape() == carry[i].shape() && outputs[i].aval().weak)
        outputs[i] = narrowed(outputs[i], carry[i].dtype(), carry[i].aval().weak, name);
    for (std::size_t i = 0; i < carry.size() && i < outputs.size(); ++i)
      outputs[i] = varying_along(outputs[i], carry[i].aval().varying);
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
      carry[i] = varying_along(yielded(carry[i], wanted.dtype, wanted.weak, name), wanted.varying);
    }
    if (changed && attempt < most_attempts) continue;
    return agree ? traced : make_jaxpr(converted, avals, name);
  }
}

Arrays to_front(std::span<const Batched> values, Dim size) {
  Arrays arrays;
  for (const Batched& value : values) arrays.push_back(batch_to_front(value, size));
  return arrays;
}

std::vector<Batched> in_front(const Arrays& arrays) {
  std::vector<Batched> values;
  for (const Array& array : arrays) values.push_back({array, 0});
  return values;
}

Array choose_examples(const Array& flags, const Array& a, const Array& b) {
  if (a.aval().stack > 0)
    return map_stacks(Arrays{a, b}, [&](std::span<const Array> both) {
      return choose_examples(flags, both[0], both[1]);
    });
  std::vector<int> axes;
  for (int i = 0; i < flags.ndim(); ++i) axes.push_back(i);
  return lax::select(lax::broadcast_in_dim(flags, a.shape(), axes), a, b);
}

Array live_and(const LiveExamples& examples, const Array& marks) {
  return examples.live.is_valid() ? lax::bitwise_and(examples.live, marks) : marks;
}

bool are_arrays(std::span<const Aval> avals) {
  return std::none_of(avals.begin(), avals.end(), [](const Aval& aval) { return aval.stack > 0; });
}

bool selects(const Params& params) {
  bool all = params.has("select") && params.flag("select");
  // What places of a mesh give each other, they give for all examples at once.
  if (MeshAxes::are_used())
    for_each_body(params, [&](const Jaxpr& body) { all |= !communicated(body).empty(); });
  return all;
}

}  // namespace plait
