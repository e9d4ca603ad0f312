// Rules of rewrites: a pattern and its replacement, both ordinary functions of the same arguments.
//
// A pattern is traced like any function. Its arguments are wildcards, which stand for any value of
// any type; the same argument stands for equal values. A match has the pattern's primitives with
// equal parameters and literals, modulo commutativity. Outside the match only results of the
// pattern are used.
//
// NOTE: [patterns at types] The trace of a function depends on the types of its arguments, and
// those of a match are known only once it is found. So a pattern is first traced at types that
// occur in the program, which gives its shape: primitives and their connections. Where the shape
// fits, ignoring parameters and values of literals, the values of the arguments are known. The
// pattern is then traced at their types and compared exactly.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rewriting/edit.h>
#include <plait/trace/sizes.h>

namespace plait {

// A place where a pattern matches: the value of each argument, and the equations, in the order of
// the pattern's.
struct Match {
  std::vector<Atom> arguments;
  std::vector<Aval> avals;  // of the arguments
  std::vector<Equation> equations;
};

struct RuleOptions {
  std::string name = "";                         // for messages and statistics
  std::function<bool(const Match&)> where = {};  // whether to apply the rule there
  // Primitives whose parameters are wildcards, by name, such as "conv". The replacement's equation
  // of the same primitive takes the parameters of the match. Each occurs at most once in a pattern.
  std::vector<std::string> any_params = {};
  // Types at which to trace the pattern first, such as {"n c h w", "c"}: sizes stand for any size,
  // but ranks and dtypes are fixed. By default those of the program that is rewritten.
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

  // The patterns traced at arguments of such types. ValueError for a pattern that can match
  // nothing, such as one that does not use an argument.
  std::vector<Pattern> shapes(std::span<const Aval> types) const;
  // Null where the pattern cannot be traced at these types.
  std::shared_ptr<const RuleInstance> instance(const std::vector<Aval>& avals,
                                               const WildParams& wild) const;
  // The program that replaces the match. ValueError when its results have other types.
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
// The match whose first result is defined by this equation, if any.
std::optional<FoundMatch> find_match(const Rule& rule, const Pattern& shape,
                                     const ProgramBuilder& program, int root);

}  // namespace plait
