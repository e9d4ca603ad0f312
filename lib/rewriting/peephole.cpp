// See peephole.h.
// SPDX-License-Identifier: Apache-2.0
#include "rewriting/peephole.h"

#include <plait/base/hash.h>

#include <algorithm>
#include <set>

#include "ir/environment.h"

namespace plait {
namespace {

std::size_t hash_of(const Peephole& equation) {
  std::size_t hash = hash_combine(std::size_t(equation.primitive.index()), equation.params.hash());
  for (const Atom& atom : equation.inputs)
    hash = hash_combine(
        hash, atom.is_var() ? std::size_t(atom.var().id) * 2 : atom.literal().hash() * 2 + 1);
  return hash;
}

}  // namespace

const Equation* Peephole::defined_by(std::size_t input, const Primitive& by) const {
  const Equation* found = program.definition(inputs[input]);
  return found && *found->primitive == by ? found : nullptr;
}

PeepholeRules::PeepholeRules(std::vector<PeepholeRule> rules) : rules_(std::move(rules)) {
  std::set<int> seen;
  for (const PeepholeRule& named : rules_)
    for (const Primitive* root : named.roots) {
      if (!seen.insert(root->index()).second) continue;
      for (const PeepholeRule& rule : rules_) {
        const bool starts_here =
            std::any_of(rule.roots.begin(), rule.roots.end(),
                        [&](const Primitive* other) { return *other == *root; });
        if (starts_here || rule.roots.empty()) by_root_.add(*root, &rule);
      }
    }
  for (const PeepholeRule& rule : rules_)
    if (rule.roots.empty()) anywhere_.push_back(&rule);
}

std::span<const PeepholeRule* const> PeepholeRules::of(const Primitive& primitive) const {
  const std::span<const PeepholeRule* const> found = by_root_.of(primitive);
  return found.empty() ? std::span<const PeepholeRule* const>(anywhere_) : found;
}

std::vector<Atom> PeepholeBuilder::add(const Primitive& primitive, std::vector<Atom> inputs,
                                       const Params& params, Source source) {
  std::vector<Aval> avals;
  avals.reserve(inputs.size());
  for (const Atom& atom : inputs) avals.push_back(aval(atom));
  if (auto known = simplify(primitive, inputs, avals, params)) return *std::move(known);
  const Peephole equation{*this, primitive, inputs, avals, params, source};
  for (const PeepholeRule* rule : rules_.of(primitive))
    if (Replacement replacement = rule->apply(equation)) return *std::move(replacement);
  if (Replacement replacement = lower_(equation)) return *std::move(replacement);
  return keep(equation, infer(primitive, avals, params));
}

std::vector<Atom> PeepholeBuilder::add_program(const Jaxpr& program, std::vector<Atom> inputs,
                                               Source of) {
  const std::string_view outer = of ? std::string_view(of->scope) : std::string_view();
  Environment environment(program, std::move(inputs));
  for (const Equation& equation : program->equations)
    environment.set(equation.outputs, add(*equation.primitive, environment.read(equation.inputs),
                                          equation.params, equation.source.in_scope(outer)));
  return environment.read(program->outputs);
}

const Equation* PeepholeBuilder::equal_to(const Peephole& equation, std::size_t hash) const {
  auto [first, last] = known_.equal_range(hash);
  for (; first != last; ++first) {
    const Equation& other = program_.equation(first->second);
    if (*other.primitive == equation.primitive &&
        std::ranges::equal(other.inputs, equation.inputs) && other.params == equation.params)
      return &other;
  }
  return nullptr;
}

std::vector<Atom> PeepholeBuilder::add_known(const Peephole& equation, std::vector<Aval> outputs) {
  const std::vector<Var> vars =
      program_.add_known(equation.primitive, equation.operands(), equation.params, equation.source,
                         std::move(outputs));
  return {vars.begin(), vars.end()};
}

std::vector<Atom> PeepholeBuilder::keep(const Peephole& equation, std::vector<Aval> outputs) {
  if (is_effectful({&equation.primitive, {}, equation.params, {}, {}}))
    return add_known(equation, std::move(outputs));
  const std::size_t hash = hash_of(equation);
  if (const Equation* equal = equal_to(equation, hash))
    return {equal->outputs.begin(), equal->outputs.end()};
  known_.emplace(hash, int(program_.num_equations()));
  return add_known(equation, std::move(outputs));
}

std::vector<Atom> PeepholeBuilder::keep_apart(const Peephole& equation) {
  return add_known(
      equation,
      infer(equation.primitive, {equation.avals.begin(), equation.avals.end()}, equation.params));
}

const Equation* PeepholeBuilder::definition(const Atom& atom) const {
  if (!atom.is_var()) return nullptr;
  const int index = program_.known_definition(atom.var());
  return index < 0 ? nullptr : &program_.equation(index);
}

Jaxpr PeepholeBuilder::close(std::vector<Atom> outputs) const {
  return program_.close_unchecked(std::move(outputs));
}

}  // namespace plait
