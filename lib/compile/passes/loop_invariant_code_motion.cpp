// Loop-invariant code motion: equations leave the body of a scan if they need not run step by step.
//   before   what depends on consts alone, once;
//            x_t @ w, for all steps as one product
//   after    carry + x_t^T @ y_t, as one product that also contracts the steps (gradients of
//            weights);
//            h_t @ w that only ys need, and what depends on it, for all steps as one
// One product of all steps is large where those of single steps are small. A sum of products needs
// no carry as large as the weights.
//
// It runs within simplify, on simplified bodies: after all transforms, so that they see scans in
// the user's form, and for compiled and eager scans alike, so that both have the same bits. Effects
// stay in the loop, and so does what could fail or reads at computed indices. A scan without steps
// is left alone, so nothing runs that would not have run.
//
// What moves is stacked, which takes memory. The stacks may take `stack_bytes`, or `stack_factor`
// times what flows in and out of the scan if that is more.
// SPDX-License-Identifier: Apache-2.0
#include "compile/passes/loop_invariant_code_motion.h"

#include <plait/control/primitives.h>
#include <plait/primitives/primitives.h>
#include <plait/rewriting/edit.h>
#include <plait/rules/interpret.h>
#include <plait/rules/motion.h>
#include <plait/transforms/transforms.h>

namespace plait::compile_passes {
namespace {

constexpr std::int64_t stack_bytes = 16 << 20, stack_factor = 4;
// A sum of so few elements, of products of so many terms, costs a step less than stacking what they
// read.
constexpr std::int64_t few_summed = 16, few_terms = 128;

// Whether it may run outside of the loop, for one step or, batched, for all of them.
bool is_movable(const Equation& equation) {
  return may_move(*equation.primitive) && !is_effectful(equation) &&
         Batch::table().find(*equation.primitive);
}

std::int64_t bytes_of(const Aval& aval) {
  return aval.stack > 0 ? 0 : aval.shape.num_elements().constant() * size_of(aval.dtype);
}

// Equations of a body, in order, and the vars that they read from elsewhere.
struct Part {
  std::vector<bool> equations;
  std::vector<int> leaves;
};

class CodeMotion {
 public:
  CodeMotion(const ScanParams& scan, const Jaxpr& body, std::span<const Aval> operands)
      : scan_(scan), body_(body), uses_(body), steps_(scan.length->constant()) {
    std::int64_t flow = 0;
    for (const Aval& aval : operands) flow += bytes_of(aval);
    const std::vector<Aval> outputs = body->output_avals();
    for (std::size_t i = 0; i < outputs.size(); ++i)
      flow += bytes_of(outputs[i]) * (i < scan.num_carry ? 1 : steps_);
    budget_ = std::max(stack_bytes, stack_factor * flow);
  }

  // Whether anything moves.
  bool choose() {
    classify();
    choose_invariants();
    choose_sliced();
    choose_sums();
    choose_behind();
    return !invariants_.empty() || !sliced_.empty() || !sums_.empty() || !behind_.empty();
  }
  Arrays rebuild(std::span<const Array> operands);

 private:
  enum class Varies { never, by_step, by_carry };
  enum class Effects { left, kept };
  enum class Steps { one, all };
  // A carry that only accumulates products.
  struct Sum {
    std::size_t carry;
    struct Term {
      int product;
      std::vector<int> movements;  // equations after it, in order
    };
    std::vector<Term> terms;
  };

  const Equation& equation(int index) const { return body_->equations[std::size_t(index)]; }
  const Aval& aval_of(int var) const { return body_->avals[std::size_t(var)]; }
  // -1 for a binder.
  int definition_of(int var) const { return uses_.definition_of(Var{var}).value_or(-1); }
  Varies varies(const Atom& atom) const {
    return atom.is_var() ? varies_[std::size_t(atom.var().id)] : Varies::never;
  }
  bool is_const(int var) const {
    return var < body_->num_binders && std::size_t(var) >= scan_.num_carry + scan_.num_xs;
  }
  bool is_x(int var) const {
    return std::size_t(var) >= scan_.num_carry && std::size_t(var) < scan_.num_carry + scan_.num_xs;
  }
  // Whether it is available outside of the loop, as an array of all steps or as an invariant.
  bool is_known(int var) const { return is_const(var) || is_x(var) || moved_[std::size_t(var)]; }

  bool is_y(const Atom& atom) const {
    const auto first = body_->outputs.begin() + std::ptrdiff_t(scan_.num_carry);
    return std::find(first, body_->outputs.end(), atom) != body_->outputs.end();
  }
  bool is_summed(std::size_t carry) const {
    return std::any_of(sums_.begin(), sums_.end(),
                       [&](const Sum& sum) { return sum.carry == carry; });
  }
  bool is_behind(int var) const;
  // Whether this y still comes from the loop.
  bool is_in_loop(const Atom& atom) const {
    if (!atom.is_var()) return true;
    const bool is_slice = is_known(atom.var().id) && varies(atom) == Varies::by_step;
    return !is_slice && !is_behind(atom.var().id);
  }
  // What the loop still computes besides ys: carries, then what equations after it read.
  std::vector<Atom> targets_of_loop() const {
    std::vector<Atom> targets;
    for (std::size_t carry = 0; carry < scan_.num_carry; ++carry)
      if (!is_summed(carry)) targets.push_back(body_->outputs[carry]);
    for (int var : emitted_) targets.push_back(Var{var});
    return targets;
  }
  std::function<bool(int)> stops_behind() const {
    return [this](int var) {
      return !is_behind(var) && (varies(Var{var}) != Varies::never || moved_[std::size_t(var)]);
    };
  }
  static std::vector<Atom> atoms_of(std::span<const int> vars) {
    std::vector<Atom> atoms;
    for (int var : vars) atoms.push_back(Var{var});
    return atoms;
  }
  static void add_once(std::vector<int>& vars, int var) {
    if (std::find(vars.begin(), vars.end(), var) == vars.end()) vars.push_back(var);
  }

  bool take(std::int64_t bytes) {
    if (bytes > budget_) return false;
    budget_ -= bytes;
    return true;
  }

  void classify();
  void choose_invariants();
  bool is_product_of_all(const Equation& equation) const;
  void choose_sliced();
  bool add_terms(Sum& sum, const Atom& atom);
  bool is_short(const Sum& sum) const;
  void choose_sums();
  void choose_behind();

  Part part_of(std::span<const Atom> targets, const std::function<bool(int)>& stops,
               Effects effects = Effects::left) const;
  Jaxpr program_of(const Part& part, std::span<const int> binders,
                   std::span<const Atom> outputs) const;
  void evaluate(std::span<const int> targets, const std::function<bool(int)>& stops, Steps steps);
  Arrays run_loop(std::span<const Array> operands);
  Array sum_of_steps(const Sum& sum, const Array& start);

  const ScanParams& scan_;
  const Jaxpr& body_;
  const Uses uses_;
  const std::int64_t steps_;
  std::int64_t budget_;
  std::vector<Varies> varies_;            // by var
  std::vector<bool> moved_;               // by var: computed before the loop
  std::vector<bool> is_behind_;           // by equation
  std::vector<int> invariants_, sliced_;  // vars
  std::vector<Sum> sums_;
  std::vector<int> behind_;                   // vars, of the ys
  std::vector<int> emitted_;                  // vars of the loop that equations after it read
  std::vector<std::optional<Array>> arrays_;  // by var: its value outside of the loop, if known
};

void CodeMotion::classify() {
  const std::size_t num_vars = body_->avals.size();
  varies_.assign(num_vars, Varies::never);
  moved_.assign(num_vars, false);
  is_behind_.assign(body_->equations.size(), false);
  for (std::size_t i = 0; i < scan_.num_carry + scan_.num_xs; ++i)
    varies_[i] = i < scan_.num_carry ? Varies::by_carry : Varies::by_step;
  for (const Equation& equation : body_->equations) {
    Varies most = is_movable(equation) ? Varies::never : Varies::by_carry;
    for (const Atom& atom : equation.inputs) most = std::max(most, varies(atom));
    for (Var var : equation.outputs) varies_[std::size_t(var.id)] = most;
  }
}

// Equations that only move elements stay: they cost nothing there, and could grow elsewhere.
void CodeMotion::choose_invariants() {
  for (const Equation& equation : body_->equations) {
    if (moves_as(*equation.primitive, Motion::layout)) continue;
    for (Var var : equation.outputs) {
      if (varies(var) != Varies::never || uses_.num_uses(var) == 0) continue;
      moved_[std::size_t(var.id)] = true;
      invariants_.push_back(var.id);
    }
  }
}

// A product of a varying and an invariant operand, whose results for all steps are one product. If
// the second operand varies, the axis of steps follows the rows of the first and is moved to the
// front. That is worth it where it moves vectors, not where it moves matrices.
bool CodeMotion::is_product_of_all(const Equation& equation) const {
  if (!(*equation.primitive == dot_general_p)) return false;
  if (!equation.params.ints("lhs_batch").empty()) return false;
  const bool lhs = varies(equation.inputs[0]) != Varies::never,
             rhs = varies(equation.inputs[1]) != Varies::never;
  if (lhs == rhs) return false;
  const int contracted = int(equation.params.ints("lhs_contract").size());
  return lhs || body_->aval(equation.inputs[0]).rank() == contracted ||
         body_->aval(equation.inputs[1]).rank() == contracted;
}

void CodeMotion::choose_sliced() {
  for (const Equation& equation : body_->equations) {
    if (!is_product_of_all(equation)) continue;
    const Var var = equation.outputs[0];
    if (varies(var) != Varies::by_step) continue;
    if (!take(steps_ * bytes_of(aval_of(var.id)))) continue;
    moved_[std::size_t(var.id)] = true;
    sliced_.push_back(var.id);
  }
}

// Collects products of varying operands that are added up, and that nothing else reads.
bool CodeMotion::add_terms(Sum& sum, const Atom& atom) {
  if (!atom.is_var()) return false;
  std::vector<int> movements;
  for (int var = atom.var().id;;) {
    const int index = definition_of(var);
    if (index < 0 || uses_.num_uses(Var{var}) != 1 || moved_[std::size_t(var)]) return false;
    const Equation& found = equation(index);
    if (*found.primitive == dot_general_p) {
      for (const Atom& operand : found.inputs)
        if (varies(operand) == Varies::never) return false;
      std::reverse(movements.begin(), movements.end());
      sum.terms.push_back({index, std::move(movements)});
      return true;
    }
    if (*found.primitive == add_p && movements.empty())
      return add_terms(sum, found.inputs[0]) && add_terms(sum, found.inputs[1]);
    if (!(*found.primitive == transpose_p) && !(*found.primitive == reshape_p)) return false;
    movements.push_back(index);
    var = found.inputs[0].var().id;
  }
}

bool CodeMotion::is_short(const Sum& sum) const {
  const auto elements = [](const Aval& aval) { return aval.shape.num_elements().constant(); };
  return elements(aval_of(int(sum.carry))) <= few_summed &&
         std::all_of(sum.terms.begin(), sum.terms.end(), [&](const Sum::Term& term) {
           const Equation& product = equation(term.product);
           std::int64_t terms = elements(aval_of(product.outputs[0].id));
           for (const int axis : product.params.ints("lhs_contract"))
             terms *= body_->aval(product.inputs[0]).shape[axis].constant();
           return terms <= few_terms;
         });
}

void CodeMotion::choose_sums() {
  for (std::size_t carry = 0; carry < scan_.num_carry; ++carry) {
    const Atom& output = body_->outputs[carry];
    if (!output.is_var() || uses_.num_uses(Var{int(carry)}) != 1 ||
        uses_.num_uses(output.var()) != 1)
      continue;
    const int index = definition_of(output.var().id);
    if (index < 0 || !(*equation(index).primitive == add_p)) continue;
    const std::vector<Atom>& inputs = equation(index).inputs;
    const bool first = inputs[0].is_var() && inputs[0].var().id == int(carry);
    if (!first && !(inputs[1].is_var() && inputs[1].var().id == int(carry))) continue;
    const Atom& added = inputs[first ? 1 : 0];
    Sum sum{carry, {}};
    if (!(body_->aval(added).shape == aval_of(int(carry)).shape) || !add_terms(sum, added))
      continue;
    if (is_short(sum)) continue;
    std::vector<int> read = emitted_;
    for (const Sum::Term& term : sum.terms)
      for (const Atom& operand : equation(term.product).inputs)
        if (!is_known(operand.var().id)) add_once(read, operand.var().id);
    std::int64_t bytes = 0;
    for (std::size_t i = emitted_.size(); i < read.size(); ++i)
      if (!is_y(Var{read[i]})) bytes += steps_ * bytes_of(aval_of(read[i]));
    if (!take(bytes)) continue;
    emitted_ = std::move(read);
    sums_.push_back(std::move(sum));
  }
}

bool CodeMotion::is_behind(int var) const {
  const int index = definition_of(var);
  return index >= 0 && is_behind_[std::size_t(index)];
}

// Products that no carry needs, and everything that depends on them.
void CodeMotion::choose_behind() {
  const Part own = part_of(targets_of_loop(), [&](int var) { return moved_[std::size_t(var)]; });
  auto drop = [&] { is_behind_.assign(is_behind_.size(), false); };
  std::int64_t bytes = 0;
  for (std::size_t index = 0; index < body_->equations.size(); ++index) {
    if (own.equations[index]) continue;
    const Equation& equation = body_->equations[index];
    const bool follows =
        std::any_of(equation.inputs.begin(), equation.inputs.end(),
                    [&](const Atom& atom) { return atom.is_var() && is_behind(atom.var().id); });
    if (!follows &&
        (!is_product_of_all(equation) || varies(equation.outputs[0]) != Varies::by_carry))
      continue;
    if (!is_movable(equation)) return drop();
    is_behind_[index] = true;
    for (Var var : equation.outputs)
      if (!is_y(var)) bytes += steps_ * bytes_of(aval_of(var.id));
  }
  for (std::size_t i = scan_.num_carry; i < body_->outputs.size(); ++i)
    if (const Atom& atom = body_->outputs[i]; atom.is_var() && is_behind(atom.var().id))
      add_once(behind_, atom.var().id);
  std::vector<int> read;
  for (int var : part_of(atoms_of(behind_), stops_behind()).leaves) {
    if (is_known(var)) continue;
    read.push_back(var);
    if (!is_y(Var{var})) bytes += steps_ * bytes_of(aval_of(var));
  }
  if (!take(bytes)) {
    behind_.clear();
    return drop();
  }
  for (int var : read) add_once(emitted_, var);
}

// --- The program around the smaller scan ---------------------------------------------------------

// The equations that compute the targets, back to binders and to where it stops. Effects::kept adds
// all effects.
Part CodeMotion::part_of(std::span<const Atom> targets, const std::function<bool(int)>& stops,
                         Effects effects) const {
  Part part{std::vector<bool>(body_->equations.size(), false), {}};
  std::vector<bool> wanted(body_->avals.size(), false), is_leaf(body_->avals.size(), false);
  auto want = [&](const Atom& atom) {
    if (!atom.is_var()) return;
    const std::size_t var = std::size_t(atom.var().id);
    (definition_of(atom.var().id) < 0 || stops(atom.var().id) ? is_leaf : wanted)[var] = true;
  };
  for (const Atom& atom : targets) want(atom);
  for (std::size_t index = body_->equations.size(); index-- > 0;) {
    const Equation& equation = body_->equations[index];
    const bool runs = std::any_of(equation.outputs.begin(), equation.outputs.end(),
                                  [&](Var var) { return wanted[std::size_t(var.id)]; });
    if (!runs && !(effects == Effects::kept && is_effectful(equation))) continue;
    part.equations[index] = true;
    for (const Atom& atom : equation.inputs) want(atom);
  }
  for (std::size_t var = 0; var < is_leaf.size(); ++var)
    if (is_leaf[var]) part.leaves.push_back(int(var));
  return part;
}

Jaxpr CodeMotion::program_of(const Part& part, std::span<const int> binders,
                             std::span<const Atom> outputs) const {
  Builder builder;
  std::vector<std::optional<Var>> vars(body_->avals.size());
  auto read = [&](const Atom& atom) {
    return atom.is_var() ? Atom(*vars[std::size_t(atom.var().id)]) : atom;
  };
  for (int var : binders) vars[std::size_t(var)] = builder.add_binder(aval_of(var));
  for (std::size_t index = 0; index < body_->equations.size(); ++index) {
    if (!part.equations[index]) continue;
    const Equation& equation = body_->equations[index];
    std::vector<Atom> inputs;
    for (const Atom& atom : equation.inputs) inputs.push_back(read(atom));
    std::vector<Aval> avals;
    for (Var var : equation.outputs) avals.push_back(aval_of(var.id));
    const std::vector<Var> results = builder.add(*equation.primitive, std::move(inputs),
                                                 equation.params, equation.source, avals);
    for (std::size_t i = 0; i < results.size(); ++i)
      if (auto& var = vars[std::size_t(equation.outputs[i].id)]; !var) var = results[i];
  }
  std::vector<Atom> atoms;
  for (const Atom& atom : outputs) atoms.push_back(read(atom));
  return builder.close(std::move(atoms));
}

// Computes vars outside of the loop from values known there.
void CodeMotion::evaluate(std::span<const int> targets, const std::function<bool(int)>& stops,
                          Steps steps) {
  if (targets.empty()) return;
  const std::vector<Atom> atoms = atoms_of(targets);
  const Part part = part_of(atoms, stops);
  Jaxpr program = program_of(part, part.leaves, atoms);
  Arrays inputs;
  std::vector<std::optional<int>> dims;
  for (int var : part.leaves) {
    inputs.push_back(*arrays_[std::size_t(var)]);
    dims.push_back(varies(Var{var}) == Varies::never ? std::nullopt : std::optional(0));
  }
  if (steps == Steps::all) program = batch_jaxpr(program, steps_, dims, true)->jaxpr;
  const Arrays results = eval_jaxpr(program, inputs);
  for (std::size_t i = 0; i < targets.size(); ++i) arrays_[std::size_t(targets[i])] = results[i];
}

// Carries that are not summed, then ys that the loop computes, then what else is read of it.
Arrays CodeMotion::run_loop(std::span<const Array> operands) {
  std::vector<Atom> targets = targets_of_loop();
  ScanParams scan = scan_;
  scan.num_carry = targets.size() - emitted_.size();
  targets.erase(targets.begin() + std::ptrdiff_t(scan.num_carry), targets.end());
  for (std::size_t i = scan_.num_carry; i < body_->outputs.size(); ++i)
    if (is_in_loop(body_->outputs[i])) targets.push_back(body_->outputs[i]);
  // A y that is also read after the loop is stacked once.
  std::vector<std::size_t> places;
  const std::ptrdiff_t first_y = std::ptrdiff_t(scan.num_carry);
  for (int var : emitted_) {
    const auto at = std::find(targets.begin() + first_y, targets.end(), Atom(Var{var}));
    places.push_back(std::size_t(at - targets.begin()));
    if (at == targets.end()) targets.push_back(Var{var});
  }
  const Part part =
      part_of(targets, [&](int var) { return moved_[std::size_t(var)]; }, Effects::kept);
  std::vector<int> binders;
  for (std::size_t carry = 0; carry < scan_.num_carry; ++carry)
    if (!is_summed(carry)) binders.push_back(int(carry));
  for (Varies kind : {Varies::by_step, Varies::never})
    for (int var : part.leaves)
      if (varies(Var{var}) == kind) binders.push_back(var);
  scan.num_xs = std::size_t(std::count_if(part.leaves.begin(), part.leaves.end(), [&](int var) {
    return varies(Var{var}) == Varies::by_step;
  }));
  Arrays inputs;
  for (int var : binders)
    inputs.push_back(std::size_t(var) < scan_.num_carry ? operands[std::size_t(var)]
                                                        : *arrays_[std::size_t(var)]);
  scan.body = program_of(part, binders, targets);
  if (scan.body->outputs.empty() && !scan.body->effectful) return {};
  scan.settled = true;
  Arrays results = bind(scan_p, inputs, scan.to_params());
  for (std::size_t i = 0; i < emitted_.size(); ++i)
    arrays_[std::size_t(emitted_[i])] = results[places[i]];
  return results;
}

Array CodeMotion::sum_of_steps(const Sum& sum, const Array& start) {
  std::optional<Array> total;
  for (const Sum::Term& term : sum.terms) {
    const Equation& product = equation(term.product);
    const SourceScope scope(product.source);
    Params params = product.params;  // the first axis, of steps, is contracted, too
    for (const char* name : {"lhs_contract", "rhs_contract", "lhs_batch", "rhs_batch"}) {
      Shape axes;
      if (std::string_view(name).ends_with("contract")) axes.push_back(0);
      for (int axis : product.params.ints(name)) axes.push_back(axis + 1);
      params = params.with(name, axes);
    }
    Array value = bind(dot_general_p,
                       {*arrays_[std::size_t(product.inputs[0].var().id)],
                        *arrays_[std::size_t(product.inputs[1].var().id)]},
                       params);
    for (int index : term.movements)
      value = bind(*equation(index).primitive, {value}, equation(index).params);
    total = total ? Array(lax::add(*total, value)) : value;
  }
  return lax::add(start, *total);
}

Arrays CodeMotion::rebuild(std::span<const Array> operands) {
  arrays_.assign(body_->avals.size(), std::nullopt);
  for (std::size_t i = scan_.num_carry; i < operands.size(); ++i) arrays_[i] = operands[i];
  evaluate(invariants_, [](int) { return false; }, Steps::one);
  evaluate(
      sliced_,
      [&](int var) { return moved_[std::size_t(var)] && varies(Var{var}) == Varies::never; },
      Steps::all);
  const Arrays of_loop = run_loop(operands);
  evaluate(behind_, stops_behind(), Steps::all);
  Arrays results;
  std::size_t next = 0;
  for (std::size_t i = 0; i < body_->outputs.size(); ++i) {
    const Atom& atom = body_->outputs[i];
    if (i < scan_.num_carry) {
      const auto sum =
          std::find_if(sums_.begin(), sums_.end(), [&](const Sum& sum) { return sum.carry == i; });
      results.push_back(sum == sums_.end() ? of_loop[next++] : sum_of_steps(*sum, operands[i]));
    } else {
      results.push_back(is_in_loop(atom) ? of_loop[next++] : *arrays_[std::size_t(atom.var().id)]);
    }
  }
  return results;
}

}  // namespace

Jaxpr move_code_out_of_loop(const Params& params, std::span<const Aval> operands,
                            const std::function<Jaxpr(const Jaxpr&)>& simplified) {
  if (params.has("settled")) return {};
  const ScanParams scan(params);
  if (!scan.length || scan.length->constant() < 2 || scan.flagged) return {};
  const Jaxpr body = simplified(scan.body);
  CodeMotion motion(scan, body, operands);
  if (!motion.choose()) return {};
  return make_closed_jaxpr([&](std::span<const Array> inputs) { return motion.rebuild(inputs); },
                           operands);
}

}  // namespace plait::compile_passes
