// Dead-code elimination through equations that hold jaxprs. See rules/prune.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/prune.h>

#include <algorithm>
#include <optional>

namespace plait {
namespace {

std::optional<PrunedEquation> pruned(const Equation& equation, const Flags& outputs) {
  const Prune::Rule* rule = Prune::table().find(*equation.primitive);
  return rule ? (*rule)(equation.params, outputs) : std::nullopt;
}

bool all(const Flags& flags) {
  return std::all_of(flags.begin(), flags.end(), [](bool flag) { return flag; });
}

class Pruner {
 public:
  explicit Pruner(const Jaxpr& jaxpr)
      : jaxpr_(jaxpr), needed_(jaxpr->avals.size(), false), live_(jaxpr->equations.size()) {}

  // No jaxpr where nothing changes: a program must not be kept alive by its own memo.
  PrunedJaxpr run(const Flags& outputs, const Flags& inputs) {
    std::copy(inputs.begin(), inputs.end(), needed_.begin());
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i]) need(jaxpr_->outputs[i]);
    for (std::size_t i = live_.size(); i-- > 0;) visit(i);
    const Flags left(needed_.begin(), needed_.begin() + jaxpr_->num_binders);
    if (all(outputs) && all(left) && is_unchanged()) return {Jaxpr(), left};
    return {rebuilt(outputs), left};
  }

 private:
  void need(const Atom& atom) {
    if (atom.is_var()) needed_[std::size_t(atom.var().id)] = true;
  }

  void visit(std::size_t index) {
    const Equation& equation = jaxpr_->equations[index];
    Flags used;
    for (Var var : equation.outputs) used.push_back(needed_[std::size_t(var.id)]);
    const bool is_used = std::find(used.begin(), used.end(), true) != used.end();
    if (!is_used && !is_effectful(equation)) return;
    PrunedEquation whole{equation.params, Flags(equation.inputs.size(), true),
                         Flags(equation.outputs.size(), true)};
    const PrunedEquation& now =
        live_[index].emplace(pruned(equation, used).value_or(std::move(whole)));
    for (std::size_t i = 0; i < equation.inputs.size(); ++i)
      if (now.inputs[i]) need(equation.inputs[i]);
  }

  bool is_unchanged() const {
    for (std::size_t e = 0; e < live_.size(); ++e)
      if (!live_[e] || !all(live_[e]->inputs) || !all(live_[e]->outputs) ||
          !(live_[e]->params == jaxpr_->equations[e].params))
        return false;
    return true;
  }

  Jaxpr rebuilt(const Flags& outputs) const {
    Builder builder;
    std::vector<Atom> values(jaxpr_->avals.size(), Atom(Var{}));
    auto read = [&](const Atom& atom) {
      return atom.is_var() ? values[std::size_t(atom.var().id)] : atom;
    };
    for (std::size_t i = 0; i < std::size_t(jaxpr_->num_binders); ++i)
      if (needed_[i]) values[i] = builder.add_binder(jaxpr_->avals[i]);
    for (std::size_t e = 0; e < live_.size(); ++e) {
      if (!live_[e]) continue;
      const Equation& equation = jaxpr_->equations[e];
      std::vector<Atom> inputs;
      std::vector<Var> left;
      std::vector<Aval> avals;
      for (std::size_t i = 0; i < equation.inputs.size(); ++i)
        if (live_[e]->inputs[i]) inputs.push_back(read(equation.inputs[i]));
      for (std::size_t i = 0; i < equation.outputs.size(); ++i)
        if (live_[e]->outputs[i]) left.push_back(equation.outputs[i]);
      for (Var var : left) avals.push_back(jaxpr_->aval(var));
      const std::vector<Var> vars =
          builder.add(*equation.primitive, std::move(inputs), live_[e]->params, equation.source,
                      std::move(avals));
      for (std::size_t i = 0; i < left.size(); ++i) values[std::size_t(left[i].id)] = vars[i];
    }
    for (const Constraint& constraint : jaxpr_->constraints) builder.add_constraint(constraint);
    std::vector<Atom> results;
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i]) results.push_back(read(jaxpr_->outputs[i]));
    return builder.close(std::move(results), jaxpr_->sizes);
  }

  const Jaxpr& jaxpr_;
  Flags needed_;
  std::vector<std::optional<PrunedEquation>> live_;  // by equation; nullopt: dead
};

bool may_change(const Jaxpr& jaxpr) {
  return std::any_of(jaxpr->equations.begin(), jaxpr->equations.end(), [](const Equation& e) {
    return Prune::table().find(*e.primitive) != nullptr;
  });
}

struct Pruned {
  using Result = PrunedJaxpr;
  Flags outputs, inputs;
  bool operator==(const Pruned&) const = default;
};

}  // namespace

std::shared_ptr<const PrunedJaxpr> prune_jaxpr(const Jaxpr& jaxpr, const Flags& outputs,
                                               const Flags& inputs) {
  const Flags all_outputs(jaxpr->outputs.size(), true);
  const Flags all_inputs(std::size_t(jaxpr->num_binders), true);
  const Flags& wanted = outputs.empty() ? all_outputs : outputs;
  const Flags& kept = inputs.empty() ? all_inputs : inputs;
  if (wanted == all_outputs && kept == all_inputs && !may_change(jaxpr))
    return std::make_shared<PrunedJaxpr>(PrunedJaxpr{jaxpr, all_inputs});
  auto found =
      jaxpr->memo.get(Pruned{wanted, kept}, [&] { return Pruner(jaxpr).run(wanted, kept); });
  return found->jaxpr ? found : std::make_shared<PrunedJaxpr>(PrunedJaxpr{jaxpr, found->inputs});
}

Jaxpr prune(const Jaxpr& jaxpr) { return prune_jaxpr(jaxpr, {})->jaxpr; }

}  // namespace plait
