// Finds matches of patterns: a backtracking search over the ways in which equations may correspond.
// See patterns.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rewriting/patterns.h>
#include <plait/rules/commute.h>

#include <algorithm>

namespace plait {
namespace {

// Matches a pattern's equations with a program's, by backtracking.
class Matcher {
 public:
  enum class Compare { shapes, exactly };
  Matcher(const Pattern& pattern, const ProgramBuilder& program, Compare compare,
          std::function<bool(const Matcher&)> accept)
      : pattern_(pattern.jaxpr),
        program_(program),
        exact_(compare == Compare::exactly),
        accept_(std::move(accept)),
        definition_(pattern.definition),
        root_(pattern.root),
        bound_(pattern_->num_binders),
        matched_(pattern_->equations.size(), -1) {}

  bool match(int root) {
    goals_ = {{pattern_->equations[root_].outputs[0], program_.equation(root).outputs[0]}};
    return solve(0);
  }
  Atom argument(int i) const { return *bound_[i]; }
  const std::vector<int>& equations() const { return matched_; }

 private:
  bool solve(std::size_t next) {
    constexpr int max_steps = 20000;
    if (++steps_ > max_steps) return false;
    if (next == goals_.size()) return finish(next);
    const auto [wanted, found] = goals_[next];
    if (!wanted.is_var()) {
      if (found.is_var() || (exact_ && !same_number(wanted.literal(), found.literal())))
        return false;
      return solve(next + 1);
    }
    const int equation = definition_[wanted.var().id];
    if (equation < 0) return solve_argument(wanted.var().id, found, next);
    if (!found.is_var()) return false;
    const std::optional<int> target = program_.definition_of(found.var());
    return target && solve_equation(equation, *target, wanted.var(), found.var(), next);
  }

  static bool same_number(const Literal& a, const Literal& b) {
    return cast(a, a.dtype, false) == cast(b, b.dtype, false);
  }

  bool solve_argument(int argument, const Atom& found, std::size_t next) {
    if (bound_[argument]) return *bound_[argument] == found && solve(next + 1);
    if (exact_ && !(program_.aval(found) == pattern_->avals[argument])) return false;
    bound_[argument] = found;
    if (solve(next + 1)) return true;
    bound_[argument].reset();
    return false;
  }

  bool solve_equation(int wanted, int found, Var wanted_var, Var found_var, std::size_t next) {
    const Equation &pattern = pattern_->equations[wanted], &target = program_.equation(found);
    if (!(*pattern.primitive == *target.primitive) ||
        pattern.inputs.size() != target.inputs.size() ||
        pattern.outputs.size() != target.outputs.size())
      return false;
    const auto place = [](const Equation& equation, Var var) {
      return std::find(equation.outputs.begin(), equation.outputs.end(), var) -
             equation.outputs.begin();
    };
    if (place(pattern, wanted_var) != place(target, found_var)) return false;
    if (matched_[wanted] >= 0) return matched_[wanted] == found && solve(next + 1);
    if (exact_ && !(pattern.params == target.params)) return false;
    matched_[wanted] = found;
    const std::size_t size = goals_.size();
    for (std::size_t i = 0; i < pattern.inputs.size(); ++i)
      goals_.emplace_back(pattern.inputs[i], target.inputs[i]);
    if (solve(next + 1)) return true;
    goals_.erase(goals_.begin() + std::ptrdiff_t(size), goals_.end());
    if (commutes(pattern) && commutes(target)) {
      goals_.emplace_back(pattern.inputs[0], target.inputs[1]);
      goals_.emplace_back(pattern.inputs[1], target.inputs[0]);
      if (solve(next + 1)) return true;
      goals_.erase(goals_.begin() + std::ptrdiff_t(size), goals_.end());
    }
    matched_[wanted] = -1;
    return false;
  }

  // The atom that corresponds to a value of the pattern, once it is known.
  std::optional<Atom> image(const Atom& atom) const {
    if (!atom.is_var()) return std::nullopt;
    const int equation = definition_[atom.var().id];
    if (equation < 0) return bound_[atom.var().id];
    if (matched_[equation] < 0) return std::nullopt;
    const std::vector<Var>& outputs = pattern_->equations[equation].outputs;
    const auto place = std::find(outputs.begin(), outputs.end(), atom.var()) - outputs.begin();
    return program_.equation(matched_[equation]).outputs[place];
  }

  // All goals are met. Equations for other results of the pattern are searched among the users of
  // known values.
  bool finish(std::size_t next) {
    bool complete = true;
    for (std::size_t e = 0; e < matched_.size(); ++e) {
      if (matched_[e] >= 0) continue;
      complete = false;
      for (const Atom& atom : pattern_->equations[e].inputs) {
        const std::optional<Atom> known = image(atom);
        if (!known || !known->is_var()) continue;
        for (int user : program_.uses_of(known->var())) {
          if (program_.is_erased(user)) continue;
          if (!(*program_.equation(user).primitive == *pattern_->equations[e].primitive)) continue;
          goals_.emplace_back(pattern_->equations[e].outputs[0],
                              program_.equation(user).outputs[0]);
          if (solve(next)) return true;
          goals_.pop_back();
        }
        return false;
      }
    }
    return complete && accept_(*this);
  }

  const Jaxpr& pattern_;
  const ProgramBuilder& program_;
  const bool exact_;
  const std::function<bool(const Matcher&)> accept_;
  const std::vector<int>& definition_;
  const int root_;
  std::vector<std::optional<Atom>> bound_;  // by argument
  std::vector<int> matched_;                // by equation of the pattern
  std::vector<std::pair<Atom, Atom>> goals_;
  int steps_ = 0;
};

// Whether a match may be removed: only its results are used elsewhere, and no argument depends on a
// result.
bool is_separable(const Jaxpr& pattern, const ProgramBuilder& program,
                  const std::vector<int>& matched, std::span<const Atom> arguments) {
  std::vector<char> is_result(pattern->avals.size(), 0);
  for (const Atom& atom : pattern->outputs) is_result[atom.var().id] = 1;
  for (std::size_t e = 0; e < matched.size(); ++e) {
    const std::vector<Var>& outputs = program.equation(matched[e]).outputs;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (is_result[pattern->equations[e].outputs[i].id]) continue;
      if (program.is_output(outputs[i])) return false;
      for (int user : program.uses_of(outputs[i]))
        if (!program.is_erased(user) &&
            std::find(matched.begin(), matched.end(), user) == matched.end())
          return false;
    }
  }
  return pattern->outputs.size() == 1 || !program.any_depends_on(arguments, matched);
}

// A quick test whether the operands of the root can match those of the pattern.
bool may_match(const Pattern& shape, const ProgramBuilder& program, int root) {
  const Equation &wanted = shape.jaxpr->equations[shape.root], &found = program.equation(root);
  if (wanted.inputs.size() != found.inputs.size()) return false;
  auto fits = [&](const Atom& a, const Atom& b) {
    if (!a.is_var()) return !b.is_var();
    if (a.var().id < shape.jaxpr->num_binders) return true;
    return b.is_var() && program.definition_of(b.var()).has_value();
  };
  if (commutes(wanted))
    return (fits(wanted.inputs[0], found.inputs[0]) && fits(wanted.inputs[1], found.inputs[1])) ||
           (fits(wanted.inputs[0], found.inputs[1]) && fits(wanted.inputs[1], found.inputs[0]));
  return std::equal(wanted.inputs.begin(), wanted.inputs.end(), found.inputs.begin(), fits);
}

}  // namespace

std::optional<FoundMatch> find_match(const Rule& rule, const Pattern& shape,
                                     const ProgramBuilder& program, int root) {
  if (!may_match(shape, program, root)) return std::nullopt;
  std::optional<FoundMatch> result;
  auto accept_exactly = [&](const std::shared_ptr<const RuleInstance>& instance) {
    return [&, instance](const Matcher& matcher) {
      FoundMatch found{instance, {}, matcher.equations()};
      for (int i = 0; i < rule.num_arguments(); ++i) found.arguments.push_back(matcher.argument(i));
      if (!is_separable(instance->pattern.jaxpr, program, found.equations, found.arguments))
        return false;
      if (rule.options().where) {
        Match match{found.arguments, instance->avals, {}};
        for (int e : found.equations) match.equations.push_back(program.equation(e));
        if (!rule.options().where(match)) return false;
      }
      result = std::move(found);
      return true;
    };
  };
  Matcher by_shape(shape, program, Matcher::Compare::shapes, [&](const Matcher& matcher) {
    std::vector<Aval> avals;
    for (int i = 0; i < rule.num_arguments(); ++i)
      avals.push_back(program.aval(matcher.argument(i)));
    WildParams wild;
    for (const std::string& name : rule.options().any_params)
      for (int e : matcher.equations())
        if (program.equation(e).primitive->name() == name)
          wild.emplace_back(program.equation(e).primitive, program.equation(e).params);
    const std::shared_ptr<const RuleInstance> instance = rule.instance(avals, wild);
    if (!instance) return false;
    const Pattern& pattern = instance->pattern;
    if (!(*pattern.jaxpr->equations[pattern.root].primitive == *program.equation(root).primitive))
      return false;
    return Matcher(pattern, program, Matcher::Compare::exactly, accept_exactly(instance))
        .match(root);
  });
  by_shape.match(root);
  return result;
}

}  // namespace plait
