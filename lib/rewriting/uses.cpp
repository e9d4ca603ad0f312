// Reading programs: who uses what, and walks. See edit.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rewriting/edit.h>

#include <utility>

namespace plait {

Uses::Uses(const Jaxpr& jaxpr)
    : jaxpr_(jaxpr),
      definition_(jaxpr->avals.size(), -1),
      begin_(jaxpr->avals.size() + 1, 0),
      num_uses_(jaxpr->avals.size(), 0),
      is_output_(jaxpr->avals.size(), 0) {
  // Users are counted, then placed. An equation that reads a var twice is one user.
  auto for_each_use = [&](const std::function<void(int var, int equation)>& use) {
    std::vector<int> last(jaxpr->avals.size(), -1);
    for (std::size_t e = 0; e < jaxpr->equations.size(); ++e)
      for (const Atom& atom : jaxpr->equations[e].inputs)
        if (atom.is_var() && std::exchange(last[atom.var().id], int(e)) != int(e))
          use(atom.var().id, int(e));
  };
  for_each_use([&](int var, int) { ++begin_[var + 1]; });
  for (std::size_t v = 0; v + 1 < begin_.size(); ++v) begin_[v + 1] += begin_[v];
  users_.resize(begin_.back());
  std::vector<int> next(begin_.begin(), begin_.end() - 1);
  for_each_use([&](int var, int equation) { users_[next[var]++] = equation; });
  auto count = [&](const Atom& atom) {
    if (atom.is_var()) ++num_uses_[atom.var().id];
  };
  for (std::size_t e = 0; e < jaxpr->equations.size(); ++e) {
    for (const Atom& atom : jaxpr->equations[e].inputs) count(atom);
    for (Var var : jaxpr->equations[e].outputs) definition_[var.id] = int(e);
  }
  for (const Atom& atom : jaxpr->outputs) {
    count(atom);
    if (atom.is_var()) is_output_[atom.var().id] = 1;
  }
}

void Uses::require(Var var) const {
  if (var.id < 0 || var.id >= int(definition_.size()))
    throw ValueError("var " + std::to_string(var.id) + " is none of a program of " +
                         std::to_string(definition_.size()) + " vars",
                     "ask for vars of the same program");
}

std::span<const int> Uses::users_of(Var var) const {
  require(var);
  return {users_.data() + begin_[var.id], users_.data() + begin_[var.id + 1]};
}

std::optional<int> Uses::definition_of(Var var) const {
  require(var);
  return definition_[var.id] < 0 ? std::nullopt : std::optional(definition_[var.id]);
}

bool Uses::is_output(Var var) const {
  require(var);
  return is_output_[var.id];
}

int Uses::num_uses(Var var) const {
  require(var);
  return num_uses_[var.id];
}

bool Uses::depends_on(const Atom& value, Var on) const {
  require(on);
  if (!value.is_var()) return false;
  require(value.var());
  // Vars are numbered in order of definition: a var numbered before `on` does not depend on it.
  std::vector<char> seen(definition_.size(), 0);
  std::vector<int> open{value.var().id};
  while (!open.empty()) {
    const int var = open.back();
    open.pop_back();
    if (var == on.id) return true;
    if (var < on.id || definition_[var] < 0 || std::exchange(seen[var], 1)) continue;
    for (const Atom& atom : jaxpr_->equations[definition_[var]].inputs)
      if (atom.is_var()) open.push_back(atom.var().id);
  }
  return false;
}

void walk(const Jaxpr& jaxpr,
          const std::function<void(const Jaxpr& owner, const Equation& equation)>& visit,
          Nested nested) {
  for (const Equation& equation : jaxpr->equations) {
    visit(jaxpr, equation);
    if (nested == Nested::yes)
      for_each_body(equation.params, [&](const Jaxpr& body) { walk(body, visit); });
  }
}

std::size_t num_equations(const Jaxpr& jaxpr) {
  struct NumEquations : Property<std::size_t> {};
  return *jaxpr->memo.get(NumEquations{}, [&] {
    std::size_t count = jaxpr->equations.size();
    for (const Equation& equation : jaxpr->equations)
      for_each_body(equation.params, [&](const Jaxpr& body) { count += num_equations(body); });
    return count;
  });
}

}  // namespace plait
