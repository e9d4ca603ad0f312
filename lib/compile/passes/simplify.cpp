// simplify: jaxpr -> jaxpr, in one walk that inlines bodies and adds every equation through the
// rules of algebra.cpp.
//
// It runs before partition, so that backends see plain equations, whatever transforms leave behind.
// It runs after all differentiation, because decomposing masked programs earlier would let NaN of
// the padding reach real gradients. Composites stay whole where a backend claims them.
// SPDX-License-Identifier: Apache-2.0
#include "compile/passes/simplify.h"

#include <plait/control/primitives.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/inline.h>
#include <plait/rules/interpret.h>
#include <plait/transforms/transforms.h>

#include "compile/passes/pipeline.h"
#include "compile/passes/unchanged_carries.h"

namespace plait::compile_passes {
namespace {

// Literals need no ordering, and have no memory that a barrier could pass on. The results of a
// barrier are not merged with equal values on its other side, and so not with other barriers.
std::vector<Atom> barrier_of_vars(const Peephole& barrier) {
  std::vector<Atom> results = barrier.operands(), vars;
  std::copy_if(results.begin(), results.end(), std::back_inserter(vars),
               [](const Atom& atom) { return atom.is_var(); });
  if (vars.empty()) return results;
  if (vars.size() == results.size()) return barrier.program.keep_apart(barrier);
  const std::vector<Atom> passed =
      barrier.program.add(barrier_p, std::move(vars), {}, barrier.source);
  std::size_t next = 0;
  for (Atom& atom : results)
    if (atom.is_var()) atom = passed[next++];
  return results;
}

// Lowers an equation that holds a body, or that no kernel runs.
Replacement lowered(const Peephole& e, const KeepWhole& keep) {
  auto is_whole = [&](std::span<const Aval> outputs) {
    return keep({&e.primitive, e.operands(), e.params, {}, e.source}, e.avals, outputs);
  };
  if (e.primitive == barrier_p) return barrier_of_vars(e);
  if (const Inline::Rule* inlining = Inline::table().find(e.primitive)) {
    const Jaxpr body = open_body(e.params);
    if (inlining->when == Inline::When::unclaimed && is_whole(body->output_avals()))
      return e.program.keep(e, body->output_avals());
    return e.program.add_program(body, e.operands(), e.source);
  }
  if (e.primitive == scan_p) {
    const SourceScope scope(e.source);
    if (const Jaxpr smaller = simplify_loop(e.params, e.avals, keep))
      return e.program.add_program(smaller, e.operands(), e.source);
  }
  if (e.primitive == while_p) {
    const SourceScope scope(e.source);
    const auto simplified = [&](const Jaxpr& body) { return simplify_program(body, keep); };
    if (const Jaxpr smaller = forward_unchanged_in_while(e.params, e.avals, simplified))
      return e.program.add_program(smaller, e.operands(), e.source);
  }
  if (Eval::table().find(e.primitive) || !Decompose::table().find(e.primitive)) return std::nullopt;
  std::vector<Aval> outputs = infer(e.primitive, e.avals, e.params);
  if (!is_cheap_together({&e.primitive, e.operands(), e.params, {}, e.source}) && is_whole(outputs))
    return e.program.keep(e, std::move(outputs));
  const SourceScope scope(e.source);
  return e.program.add_program(decomposition(e.primitive, e.avals, e.params), e.operands(),
                               e.source);
}

}  // namespace

Jaxpr simplify_equations(const Jaxpr& program, const KeepWhole& keep) {
  PeepholeBuilder builder(algebra(),
                          [&](const Peephole& equation) { return lowered(equation, keep); });
  std::vector<Atom> inputs;
  for (const Aval& aval : program->input_avals()) inputs.push_back(builder.add_input(aval));
  return builder.close(builder.add_program(program, std::move(inputs)));
}

}  // namespace plait::compile_passes
