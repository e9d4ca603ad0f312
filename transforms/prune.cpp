// prune: dead code in equations that hold jaxprs. An output that nothing uses is taken out of the
// body, and with it what only it needs, down to operands of the equation.
//
// It runs before a program is differentiated, so that nothing is kept for what is not used, and
// when a program is compiled, where all uses are known.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ops.h>
#include <plait/prune.h>

namespace plait {
namespace {

// An equation with fewer outputs: its new parameters, and which inputs and outputs are left.
struct Narrowed {
  Params params;
  Flags inputs, outputs;
};

Flags part(const Flags& flags, std::size_t begin, std::size_t end) {
  return {flags.begin() + std::ptrdiff_t(begin), flags.begin() + std::ptrdiff_t(end)};
}
std::size_t count(const Flags& flags) {
  return std::size_t(std::count(flags.begin(), flags.end(), true));
}

// A loop's body with the marked outputs, of which the first are its carries. A carry that is needed
// makes those needed that it depends on. Further inputs may be marked as needed in any case.
std::shared_ptr<const PrunedJaxpr> prune_body(const Jaxpr& body, Flags& outputs,
                                              std::size_t num_carry, Flags inputs) {
  for (;;) {
    std::copy_n(outputs.begin(), num_carry, inputs.begin());
    auto pruned = prune_jaxpr(body, outputs, inputs);
    if (!widen(outputs, pruned->inputs, num_carry)) return pruned;
  }
}

Narrowed narrow_scan(const Params& params, Flags outputs) {
  ScanParams scan(params);
  Flags inputs(std::size_t(scan.body->num_binders), false);
  // Stacks know how long the loop is; where there are flags, these do.
  const std::size_t num_kept = scan.flagged ? 1 : scan.length ? 0 : scan.num_xs;
  std::fill_n(inputs.begin() + std::ptrdiff_t(scan.num_carry), num_kept, true);
  const auto pruned = prune_body(scan.body, outputs, scan.num_carry, std::move(inputs));
  const std::size_t first_const = scan.num_carry + scan.num_xs;
  scan.num_xs = count(part(pruned->inputs, scan.num_carry, first_const));
  scan.num_carry = count(part(outputs, 0, scan.num_carry));
  scan.body = pruned->jaxpr;
  return {scan.to_params(), pruned->inputs, std::move(outputs)};
}

Narrowed narrow_while(const Params& params, Flags outputs) {
  WhileParams loop(params);
  const std::size_t n = loop.num_carry;
  const auto cond = prune_jaxpr(loop.cond, {true}, Flags(std::size_t(loop.cond->num_binders)));
  widen(outputs, cond->inputs, n);
  // What is pushed goes with the flags that say who takes a step.
  if (count(outputs) > count(part(outputs, 0, n))) outputs[n] = true;
  const auto body =
      prune_body(loop.body, outputs, n, Flags(std::size_t(loop.body->num_binders), false));
  const Flags carry = part(outputs, 0, n);
  const Flags cond_consts = part(cond->inputs, n, cond->inputs.size()),
              body_consts = part(body->inputs, n, body->inputs.size());
  loop.cond = prune_jaxpr(loop.cond, {true}, concatenate(carry, cond_consts))->jaxpr;
  loop.body = body->jaxpr;
  loop.num_carry = count(carry);
  loop.num_cond_consts = count(cond_consts);
  return {loop.to_params(), concatenate(concatenate(carry, cond_consts), body_consts),
          std::move(outputs)};
}

Narrowed narrow_cond(const Params& params, Flags outputs) {
  CondParams cond(params);
  Flags inputs(std::size_t(cond.branches[0]->num_binders), false);
  for (const Jaxpr& branch : cond.branches) {
    const Flags& mine = prune_jaxpr(branch, outputs, Flags(inputs.size()))->inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = inputs[i] || mine[i];
  }
  for (Jaxpr& branch : cond.branches) branch = prune_jaxpr(branch, outputs, inputs)->jaxpr;
  inputs.insert(inputs.begin(), true);  // the index
  return {cond.to_params(), std::move(inputs), std::move(outputs)};
}

std::optional<Narrowed> narrow(const Equation& equation, const Flags& outputs);

Narrowed narrow_lanes(const Params& params, Flags outputs) {
  LanesParams lanes(params);
  // A kernel runs a body that is one equation, with all of its outputs.
  if (lanes.is_divergent()) outputs = narrow(lanes.body->equations[0], outputs)->outputs;
  const auto pruned = prune_jaxpr(lanes.body, outputs, Flags(std::size_t(lanes.body->num_binders)));
  lanes.body = pruned->jaxpr;
  Flags inputs = pruned->inputs;
  if (lanes.guarded) inputs.insert(inputs.begin(), true);
  for (Lane& lane : lanes.lanes) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i]) lane.batched[next++] = lane.batched[i];
    lane.batched.resize(next);
  }
  return {lanes.to_params(), std::move(inputs), std::move(outputs)};
}

Narrowed narrow_call(const Params& params, Flags outputs) {
  const Jaxpr body = body_of_call(params);
  const auto pruned = prune_jaxpr(body, outputs, Flags(std::size_t(body->num_binders)));
  const std::vector<Dim>& sizes = pruned->jaxpr->sizes;
  Params now = params.without("sizes").with("body", pruned->jaxpr);
  if (!sizes.empty()) now = now.with("sizes", Shape(sizes.begin(), sizes.end()));
  return {std::move(now), pruned->inputs, std::move(outputs)};
}

// Calls with entries beside the body, and composites, are taken as a whole.
bool is_plain_call(const Equation& equation) {
  if (!(*equation.primitive == call_p)) return false;
  for (const char* entry : {"jvp", "bwd", "symbol", "num_captured"})
    if (equation.params.has(entry)) return false;
  return true;
}

std::optional<Narrowed> narrow(const Equation& equation, const Flags& outputs) {
  const Primitive& primitive = *equation.primitive;
  if (primitive == scan_p) return narrow_scan(equation.params, outputs);
  if (primitive == while_p) return narrow_while(equation.params, outputs);
  if (primitive == cond_p) return narrow_cond(equation.params, outputs);
  if (primitive == lanes_p) return narrow_lanes(equation.params, outputs);
  if (is_plain_call(equation)) return narrow_call(equation.params, outputs);
  return std::nullopt;
}

class Pruner {
 public:
  explicit Pruner(const Jaxpr& jaxpr)
      : jaxpr_(jaxpr), needed_(jaxpr->avals.size(), false), live_(jaxpr->equations.size()) {}

  PrunedJaxpr run(const Flags& outputs, const Flags& inputs) {
    std::copy(inputs.begin(), inputs.end(), needed_.begin());
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i]) need(jaxpr_->outputs[i]);
    for (std::size_t i = live_.size(); i-- > 0;) visit(i);
    PrunedJaxpr result{rebuilt(outputs), part(needed_, 0, std::size_t(jaxpr_->num_binders))};
    return result;
  }

 private:
  void need(const Atom& atom) {
    if (atom.is_var()) needed_[std::size_t(atom.var().id)] = true;
  }

  void visit(std::size_t index) {
    const Equation& equation = jaxpr_->equations[index];
    Flags used;
    for (Var var : equation.outputs) used.push_back(needed_[std::size_t(var.id)]);
    if (count(used) == 0 && !is_effectful(equation)) return;
    Narrowed whole{equation.params, Flags(equation.inputs.size(), true),
                   Flags(equation.outputs.size(), true)};
    const Narrowed& now = live_[index].emplace(narrow(equation, used).value_or(std::move(whole)));
    for (std::size_t i = 0; i < equation.inputs.size(); ++i)
      if (now.inputs[i]) need(equation.inputs[i]);
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
  std::vector<std::optional<Narrowed>> live_;  // by equation; none: dead
};

bool holds_bodies(const Jaxpr& jaxpr) {
  return std::any_of(jaxpr->equations.begin(), jaxpr->equations.end(), [](const Equation& e) {
    const Primitive& p = *e.primitive;
    return p == scan_p || p == while_p || p == cond_p || p == lanes_p || is_plain_call(e);
  });
}

}  // namespace

std::shared_ptr<const PrunedJaxpr> prune_jaxpr(const Jaxpr& jaxpr, const Flags& outputs,
                                               const Flags& inputs) {
  const Flags all_outputs(jaxpr->outputs.size(), true);
  const Flags all_inputs(std::size_t(jaxpr->num_binders), true);
  const Flags& wanted = outputs.empty() ? all_outputs : outputs;
  const Flags& kept = inputs.empty() ? all_inputs : inputs;
  if (wanted == all_outputs && kept == all_inputs && !holds_bodies(jaxpr))
    return std::make_shared<PrunedJaxpr>(PrunedJaxpr{jaxpr, all_inputs});
  return memoised<PrunedJaxpr>(jaxpr, "prune " + text_of(wanted) + " " + text_of(kept),
                               [&] { return Pruner(jaxpr).run(wanted, kept); });
}

Jaxpr prune(const Jaxpr& jaxpr) { return prune_jaxpr(jaxpr, {})->jaxpr; }

}  // namespace plait
