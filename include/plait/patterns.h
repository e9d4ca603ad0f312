// Rules of rewrites: a pattern and its replacement, both ordinary functions of the same arguments.
//
// A pattern is traced like any function; its arguments are wildcards, which stand for any value of
// any type, the same argument for equal values. A match has the pattern's primitives with equal
// parameters and literals, modulo the order of operands where it does not matter; nothing but
// results of the pattern is used outside the match.
//
// NOTE: [patterns at types] What a function traces to depends on the types of its arguments, and
// those of a match are known only when it is found. So a pattern is first traced at types that
// occur in the program, which gives its shapes: primitives and how they are connected. Where a
// shape fits, ignoring parameters and values of literals, the values that arguments stand for are
// known; the pattern traced at their types is then compared exactly.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/edit.h>
#include <plait/sizes.h>

namespace plait {

// A place where a pattern matches: what each argument stands for, and the equations, in the order
// of the pattern's.
struct Match {
  std::vector<Atom> arguments;
  std::vector<Aval> avals;  // of the arguments
  std::vector<Equation> equations;
};

struct RuleOptions {
  std::string name = "";                         // for messages and statistics
  std::function<bool(const Match&)> where = {};  // whether to apply the rule there
  // Primitives whose parameters are wildcards, by name, such as "conv": the replacement's equation
  // of the same primitive takes the match's. Each at most once in a pattern.
  std::vector<std::string> any_params = {};
  // Types of arguments to trace the pattern at first, such as {"n c h w", "c"}: sizes stand for
  // any, numbers of axes and dtypes do not. By default those of the program that is rewritten.
  std::vector<Spec> like = {};
};

// A traced pattern.
struct Pattern {
  explicit Pattern(Jaxpr traced);
  Jaxpr jaxpr;
  std::vector<int> definition;  // by var: the equation that defines it, -1 for arguments
  int root = -1;                // the equation that defines the first result
};

// The parameters of each primitive of any_params.
using WildParams = std::vector<std::pair<const Primitive*, Params>>;

// A pattern at the types of a match.
struct RuleInstance {
  std::vector<Aval> avals;  // of the arguments
  WildParams wild;
  Pattern pattern;
};

class Rule {
 public:
  Rule(Function pattern, Function replacement, int num_arguments, RuleOptions options = {});
  const std::string& name() const;
  const RuleOptions& options() const;
  int num_arguments() const;

  // What the pattern looks like at arguments of such types. ValueError for a pattern that can match
  // nothing, such as one that leaves an argument out.
  std::vector<Pattern> shapes(std::span<const Aval> types) const;
  // Null where the pattern cannot be traced at these types.
  std::shared_ptr<const RuleInstance> instance(const std::vector<Aval>& avals,
                                               const WildParams& wild) const;
  // What takes the pattern's place there. ValueError when its results have other types.
  Jaxpr replacement(const std::shared_ptr<const RuleInstance>& instance) const;
  // One of the two functions, traced at any types.
  enum class Side { pattern, replacement };
  Jaxpr trace(Side side, std::span<const Aval> avals, const WildParams& wild) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Finds matches in a program that is being rewritten.
struct FoundMatch {
  std::shared_ptr<const RuleInstance> instance;
  std::vector<Atom> arguments;
  std::vector<int> equations;  // of the pattern's equations
};
// The match whose first result is defined by this equation, if there is one.
std::optional<FoundMatch> find_match(const Rule& rule, const Pattern& shape,
                                     const ProgramBuilder& program, int root);

}  // namespace plait
