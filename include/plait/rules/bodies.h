// The rule kind Bodies: the jaxprs that an equation holds, how often each runs, and on which
// operands.
//
// Every walk that follows values into bodies, or adds up what bodies do, needs it: costs,
// summaries, explanations, estimates of the time of a call.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

namespace plait {

struct Body {
  static constexpr int carried = -1;

  // How often it runs each time the equation runs.
  enum class Runs {
    once,
    alternatively,  // one of several alternatives runs: a branch
    repeatedly,     // sequentially: the body of a loop
    per_example,    // for each example of a number of examples, in no order
  };

  Jaxpr jaxpr;  // over the sizes of the enclosing program, and its own in `sizes`
  Runs runs = Runs::once;
  Dim times = 1;  // the number of runs, where it is more than one
  // Whether that number is known before the equation runs; otherwise times is one step of a loop,
  // or an upper bound.
  bool is_known = true;
  // For each input, the operand of the equation that it is, or is a slice of; `carried` for a loop
  // carry.
  std::vector<int> operands = {};
  // Upper bounds of its own named sizes, where examples have bounded ones.
  std::vector<std::pair<Dim, Dim>> sizes = {};
};

struct Bodies {
  static constexpr auto name = "bodies";
  using Rule = std::function<std::vector<Body>(const Params& params)>;
  static RuleTable<Bodies>& table();
};

// The bodies of an equation; empty where the primitive has no such rule.
std::vector<Body> bodies_of(const Equation& equation);
// Whether a body runs more than once, sequentially.
bool has_loop_body(const Equation& equation);
bool runs_examples(const Equation& equation);  // each by itself

// How many of its first inputs its first outputs may take the place of: the carries of a loop's
// step, and the operands of a branch that have the types of its first results.
std::size_t num_replaced(const Body& body);

// Flags for inputs, outputs or carries.
using Flags = std::vector<bool>;

// Marks the carries whose next value is marked; returns whether any was new.
inline bool widen(Flags& carry, const Flags& next, std::size_t num_carry) {
  bool changed = false;
  for (std::size_t i = 0; i < num_carry; ++i)
    if (next[i] && !carry[i]) carry[i] = changed = true;
  return changed;
}

// Concatenates two lists: operands of such an equation, their types, flags.
template <class A, class B = A>
  requires std::same_as<typename A::value_type, typename B::value_type>
std::vector<typename A::value_type> concatenate(const A& a, const B& b) {
  std::vector<typename A::value_type> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

// The operands of a body whose inputs are those of the equation, consecutively from `first` on.
std::vector<int> operands_from(int first, const Jaxpr& body);
// The same for the body of a loop, whose first inputs are carried; the others are the operands from
// `first` on.
std::vector<int> operands_of_loop(std::size_t num_carry, int first, const Jaxpr& body);

}  // namespace plait
