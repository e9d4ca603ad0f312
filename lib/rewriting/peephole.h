// Peephole rewriting: while a program is built, rules rewrite each equation before it is added, and
// an equation that is equal to an earlier one is merged with it.
//
// A rule sees an equation and the definitions of its operands, but not the uses of its results. So
// one walk in order rewrites a program, and what a rule adds is rewritten in turn. Rules that
// remove a whole subgraph, which nothing else may use, are those of patterns.h: they need the
// complete program. Both are found by the primitive at which they start (by_primitive.h), and both
// edit a ProgramBuilder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rewriting/edit.h>

#include <unordered_map>

#include "rewriting/by_primitive.h"

namespace plait {

class PeepholeBuilder;

// An equation that is about to be added.
struct Peephole {
  PeepholeBuilder& program;  // what is added so far
  const Primitive& primitive;
  std::span<const Atom> inputs;
  std::span<const Aval> avals;  // of the inputs
  const Params& params;
  Source source;

  // The equation that defines an input, if it is one of this primitive. The pointer is valid until
  // something is added.
  const Equation* defined_by(std::size_t input, const Primitive& by) const;
  std::vector<Atom> operands() const { return {inputs.begin(), inputs.end()}; }
};

// An atom for each result; nullopt if a rule does not apply.
using Replacement = std::optional<std::vector<Atom>>;

struct PeepholeRule {
  const char* law;
  std::vector<const Primitive*> roots;  // where it starts; empty: at any primitive
  Replacement (*apply)(const Peephole&);
};

// Rules in order of preference: the first that applies is taken.
class PeepholeRules {
 public:
  explicit PeepholeRules(std::vector<PeepholeRule> rules);
  PeepholeRules(const PeepholeRules&) = delete;
  std::span<const PeepholeRule> all() const { return rules_; }
  std::span<const PeepholeRule* const> of(const Primitive& primitive) const;

 private:
  const std::vector<PeepholeRule> rules_;
  ByPrimitive<const PeepholeRule*> by_root_;
  std::vector<const PeepholeRule*> anywhere_;  // for primitives that no rule names
};

class PeepholeBuilder {
 public:
  // lower: rewrites an equation to which no rule applies; nullopt: it is added as it is.
  using Lower = std::function<Replacement(const Peephole&)>;
  PeepholeBuilder(const PeepholeRules& rules, Lower lower)
      : rules_(rules), lower_(std::move(lower)) {}

  Var add_input(const Aval& aval) { return program_.add_input(aval); }
  // Adds an equation, or what it is rewritten to. Returns its results.
  std::vector<Atom> add(const Primitive& primitive, std::vector<Atom> inputs, const Params& params,
                        Source source);
  // Adds the equations of a program, in the scopes of the equation that it stands for. Returns its
  // results.
  std::vector<Atom> add_program(const Jaxpr& program, std::vector<Atom> inputs, Source of = {});

  // Adds the equation as it is, unless there is an equal one.
  std::vector<Atom> keep(const Peephole& equation, std::vector<Aval> outputs);
  // Adds the equation as it is, even if there is an equal one.
  std::vector<Atom> keep_apart(const Peephole& equation);

  Aval aval(const Atom& atom) const {
    return atom.is_var() ? program_.known_aval(atom.var()) : atom.literal().aval();
  }
  // The equation that defines an atom; nullptr for an input or a literal.
  const Equation* definition(const Atom& atom) const;
  Jaxpr close(std::vector<Atom> outputs) const;

 private:
  const Equation* equal_to(const Peephole& equation, std::size_t hash) const;
  std::vector<Atom> add_known(const Peephole& equation, std::vector<Aval> outputs);

  const PeepholeRules& rules_;
  const Lower lower_;
  ProgramBuilder program_;
  std::unordered_multimap<std::size_t, int> known_;  // by hash: equations
};

}  // namespace plait
