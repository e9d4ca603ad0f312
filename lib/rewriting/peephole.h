// Peephole rewriting: while a program is built, the rules of a primitive say what each equation
// becomes before it is added, and what is equal to an earlier equation is merged with it.
//
// A rule sees an equation and those that define its operands, and nothing of what will use the
// result. So one walk in order rewrites a program, and what a rule adds is rewritten in its turn.
// Rules that take a whole piece of a program away, which nothing else may use, are those of
// patterns.h: they need the program as it will be. Both are found by the primitive that they start
// from (by_primitive.h), and both change a ProgramBuilder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rewriting/edit.h>

#include <unordered_map>

#include "rewriting/by_primitive.h"

namespace plait {

class PeepholeBuilder;

// An equation that is about to be added.
struct Peephole {
  PeepholeBuilder& program;  // what was added so far
  const Primitive& primitive;
  std::span<const Atom> inputs;
  std::span<const Aval> avals;  // of the inputs
  const Params& params;
  Source source;

  // The equation of this primitive that defines an input, if that is what defines it. It stays
  // where it is until something is added.
  const Equation* defined_by(std::size_t input, const Primitive& by) const;
  std::vector<Atom> operands() const { return {inputs.begin(), inputs.end()}; }
};

// An atom for each result, or nothing where a rule does not apply.
using Replacement = std::optional<std::vector<Atom>>;

struct PeepholeRule {
  const char* law;
  std::vector<const Primitive*> roots;  // where it starts; empty: anywhere
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
  std::vector<const PeepholeRule*> anywhere_;  // those of primitives that no rule names
};

class PeepholeBuilder {
 public:
  // lower: what becomes of an equation to which no rule applies; nothing where it is added.
  using Lower = std::function<Replacement(const Peephole&)>;
  PeepholeBuilder(const PeepholeRules& rules, Lower lower)
      : rules_(rules), lower_(std::move(lower)) {}

  Var add_input(const Aval& aval) { return program_.add_input(aval); }
  // The results of an equation, or of what it becomes.
  std::vector<Atom> add(const Primitive& primitive, std::vector<Atom> inputs, const Params& params,
                        Source source);
  // The results of a program, whose equations are added in the scopes of the equation that it
  // stands for.
  std::vector<Atom> add_program(const Jaxpr& program, std::vector<Atom> inputs, Source of = {});

  // The equation as it is, or an equal one.
  std::vector<Atom> keep(const Peephole& equation, std::vector<Aval> outputs);
  // The equation as it is, apart from equal ones.
  std::vector<Atom> keep_apart(const Peephole& equation);

  Aval aval(const Atom& atom) const {
    return atom.is_var() ? program_.known_aval(atom.var()) : atom.literal().aval();
  }
  // The equation that defines an atom; nullptr: an input or a literal.
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
