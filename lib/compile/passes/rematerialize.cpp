// Rematerialisation: jaxpr -> jaxpr. A slice that a scan stacks for another scan, and that follows
// from other slices by a few additions, multiplications or divisions, is recomputed there:
//   before   n, p = 1 / (1 + n), -p / (1 + n)   stacked by the loop, read by its gradient's loop
//   after    n                                  stacked; the gradient's loop computes the rest
// A step of a recurrent net keeps some fifteen residuals. They are written to memory and read back,
// and they evict the weights from the caches.
//
// It runs after simplify, which brings scans into the form in which they run. Simplify then runs
// once more on the result, and drops the stacks that nobody reads. The bits stay the same, because
// elementwise equations give the same wherever they run. Stacks that fit into caches stay, too:
// reading them is faster.
// SPDX-License-Identifier: Apache-2.0
#include "compile/passes/rematerialize.h"

#include <plait/control/primitives.h>
#include <plait/rewriting/edit.h>
#include <plait/rules/motion.h>

#include <set>
#include <unordered_map>

#include "ir/environment.h"
#include "ir/splice.h"

namespace plait::compile_passes {
namespace {

constexpr std::int64_t least_bytes = 1 << 20;  // of a stack
constexpr std::size_t most_equations = 4;      // for one slice, beyond those chosen before

bool is_large(const Aval& aval) {
  return aval.stack == 0 && aval.shape.is_constant() &&
         aval.shape.num_elements().constant() * size_of(aval.dtype) >= least_bytes;
}

std::optional<ScanParams> plain_scan(const Equation& equation) {
  if (!(*equation.primitive == scan_p)) return std::nullopt;
  ScanParams scan(equation.params);
  if (!scan.length || scan.flagged || !scan.length->is_constant()) return std::nullopt;
  return scan;
}

// What a later scan recomputes of the slices of an earlier one.
class Rematerialization {
 public:
  Rematerialization(const Jaxpr& program, const Equation& earlier, const ScanParams& from,
                    const Equation& later, const ScanParams& to)
      : program_(program),
        earlier_(earlier),
        from_(from),
        later_(later),
        to_(to),
        uses_(from.body) {
    const Jaxpr& body = from_.body;
    stack_of_.assign(body->avals.size(), std::nullopt);
    for (std::size_t i = from_.num_carry; i < from_.num_carry + from_.num_xs; ++i)
      if (program_->aval(earlier_.inputs[i]).stack == 0) stack_of_[i] = earlier_.inputs[i];
    for (std::size_t i = from_.num_carry; i < body->outputs.size(); ++i)
      if (const Atom& atom = body->outputs[i];
          atom.is_var() && program_->aval(earlier_.outputs[i]).stack == 0)
        stack_of_[std::size_t(atom.var().id)] = Atom(earlier_.outputs[i]);
  }

  // Whether the later scan is to recompute any slice that it alone reads. The last come first, so
  // that a slice may follow from slices that are recomputed themselves.
  bool choose(std::span<const int> reader, int later) {
    const Jaxpr& body = from_.body;
    for (std::size_t e = body->equations.size(); e-- > 0;)
      for (Var var : body->equations[e].outputs) {
        std::optional<Atom>& stack = stack_of_[std::size_t(var.id)];
        if (!stack || !stack->is_var() || reader[std::size_t(stack->var().id)] != later ||
            !is_large(program_->aval(*stack)) || body->avals[std::size_t(var.id)].weak)
          continue;
        const std::optional<Atom> kept = std::exchange(stack, std::nullopt);
        std::vector<int> more;
        if (follows(var, more) && more.size() <= most_equations) {
          computed_.emplace(kept->var().id, var.id);
          equations_.insert(equations_.end(), more.begin(), more.end());
        } else {
          stack = kept;
        }
      }
    std::sort(equations_.begin(), equations_.end());
    return !computed_.empty();
  }

  // The later scan without the slices that it recomputes.
  std::vector<Var> rebuild(Builder& builder, const Environment& outer) const {
    const Jaxpr& body = to_.body;
    Builder inner;
    std::vector<Atom> inputs, of_later(std::size_t(body->num_binders), Atom(Var{}));
    Environment of_earlier(from_.body);
    std::vector<std::pair<Atom, Atom>> bound;  // stacks of the program, and slices of them
    const std::size_t first_const = to_.num_carry + to_.num_xs;
    auto bind_input = [&](const Atom& atom, const Aval& aval) {
      inputs.push_back(outer.read(atom));
      return Atom(inner.add_binder(aval));
    };
    for (std::size_t i = 0; i < first_const; ++i) {
      const Atom& atom = later_.inputs[i];
      if (i >= to_.num_carry && atom.is_var() && computed_.count(atom.var().id)) continue;
      of_later[i] = bind_input(atom, body->avals[i]);
      if (i >= to_.num_carry) bound.emplace_back(atom, of_later[i]);
    }
    auto slice_of = [&](const Atom& stack, const Aval& aval) {
      for (const auto& [atom, slice] : bound)
        if (atom == stack) return slice;
      bound.emplace_back(stack, bind_input(stack, aval));
      return bound.back().second;
    };
    for (int e : equations_)
      for (const Atom& atom : from_.body->equations[std::size_t(e)].inputs)
        if (atom.is_var())
          if (const auto& stack = stack_of_[std::size_t(atom.var().id)])
            of_earlier.set(atom.var(), slice_of(*stack, from_.body->aval(atom)));
    ScanParams scan = to_;
    scan.num_xs = inputs.size() - to_.num_carry;
    for (std::size_t i = first_const; i < later_.inputs.size(); ++i)
      of_later[i] = bind_input(later_.inputs[i], body->avals[i]);
    for (int e : equations_) {
      const Equation& equation = from_.body->equations[std::size_t(e)];
      of_earlier.set(equation.outputs,
                     inner.add(*equation.primitive, of_earlier.read(equation.inputs),
                               equation.params, equation.source));
    }
    for (std::size_t i = to_.num_carry; i < first_const; ++i)
      if (const Atom& atom = later_.inputs[i]; atom.is_var())
        if (const auto found = computed_.find(atom.var().id); found != computed_.end())
          of_later[i] = of_earlier.read(Var{found->second});
    scan.body = inner.close(splice(inner, body, std::move(of_later)));
    return builder.add(scan_p, std::move(inputs), scan.to_params(), later_.source);
  }

 private:
  // Whether a var of the earlier body follows from stacked slices, by these equations and more.
  bool follows(Var var, std::vector<int>& more) const {
    if (stack_of_[std::size_t(var.id)]) return true;
    const std::optional<int> index = uses_.definition_of(var);
    if (!index) return false;
    const Equation& equation = from_.body->equations[std::size_t(*index)];
    if (!moves_as(*equation.primitive, Motion::cheap)) return false;
    auto has = [&](const std::vector<int>& list) {
      return std::find(list.begin(), list.end(), *index) != list.end();
    };
    if (has(more) || has(equations_)) return true;
    if (more.size() == most_equations) return false;
    more.push_back(*index);
    for (const Atom& atom : equation.inputs)
      if (atom.is_var() && !follows(atom.var(), more)) return false;
    return true;
  }

  const Jaxpr& program_;
  const Equation& earlier_;
  const ScanParams& from_;
  const Equation& later_;
  const ScanParams& to_;
  Uses uses_;                                  // of the earlier body
  std::vector<std::optional<Atom>> stack_of_;  // by its var: the stack of its slices
  std::unordered_map<int, int> computed_;      // var of the program -> var of the earlier body
  std::vector<int> equations_;                 // of the earlier body, recomputed in the later one
};

// By var of the program: the scan that alone reads it, and only as slices; negative: none.
std::vector<int> only_scan_of(const Jaxpr& program) {
  constexpr int none = -1, several = -2;
  std::vector<int> found(program->avals.size(), none);
  for (std::size_t e = 0; e < program->equations.size(); ++e) {
    const Equation& equation = program->equations[e];
    const std::optional<ScanParams> scan = plain_scan(equation);
    for (std::size_t i = 0; i < equation.inputs.size(); ++i) {
      if (!equation.inputs[i].is_var()) continue;
      int& reader = found[std::size_t(equation.inputs[i].var().id)];
      const bool is_slice = scan && i >= scan->num_carry && i < scan->num_carry + scan->num_xs;
      reader = is_slice && (reader == none || reader == int(e)) ? int(e) : several;
    }
  }
  for (const Atom& atom : program->outputs)
    if (atom.is_var()) found[std::size_t(atom.var().id)] = several;
  return found;
}

using Found = std::unordered_map<int, Rematerialization>;  // by later scan; one earlier scan each

Jaxpr rebuilt(const Jaxpr& program, const Found& found) {
  Builder builder;
  std::vector<Atom> binders;
  for (const Aval& aval : program->input_avals()) binders.push_back(builder.add_binder(aval));
  Environment environment(program, std::move(binders));
  for (std::size_t e = 0; e < program->equations.size(); ++e) {
    const Equation& equation = program->equations[e];
    if (const auto scan = found.find(int(e)); scan != found.end())
      environment.set(equation.outputs, scan->second.rebuild(builder, environment));
    else
      environment.set(
          equation.outputs,
          builder.add(*equation.primitive, environment.read(equation.inputs), equation.params,
                      equation.source, output_avals(*program, equation)));
  }
  return builder.close(environment.read(program->outputs));
}

}  // namespace

Jaxpr rematerialize(const Jaxpr& program) {
  const std::vector<int> reader = only_scan_of(program);
  std::vector<std::optional<ScanParams>> scans;
  for (const Equation& equation : program->equations) scans.push_back(plain_scan(equation));
  Found found;
  for (std::size_t e = 0; e < scans.size(); ++e) {
    if (!scans[e]) continue;
    const Equation& earlier = program->equations[e];
    std::set<int> readers;
    for (std::size_t i = scans[e]->num_carry; i < earlier.outputs.size(); ++i)
      readers.insert(reader[std::size_t(earlier.outputs[i].id)]);
    for (int r : readers) {
      if (r < 0 || found.count(r) || !(*scans[std::size_t(r)]->length == *scans[e]->length))
        continue;
      Rematerialization again(program, earlier, *scans[e], program->equations[std::size_t(r)],
                              *scans[std::size_t(r)]);
      if (again.choose(reader, r)) found.emplace(r, std::move(again));
    }
  }
  return found.empty() ? Jaxpr() : rebuilt(program, found);
}

}  // namespace plait::compile_passes
