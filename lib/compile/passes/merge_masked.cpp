// Merges two `masked` equations that mask the same sizes of the same batch, if the second reads
// results of the first, and nothing else leads from the first to the second. It runs after
// simplify, which leaves masked equations only where a backend runs them at their real sizes.
// SPDX-License-Identifier: Apache-2.0
#include "compile/passes/merge_masked.h"

#include <plait/primitives/primitives.h>
#include <plait/transforms/masked.h>

#include <algorithm>
#include <optional>

#include "ir/environment.h"
#include "ir/splice.h"

namespace plait::compile_passes {
namespace {

// By equation: whether it depends on `first`.
std::vector<bool> readers_of(const JaxprData& program, int first) {
  std::vector<bool> reads(program.equations.size(), false), made(program.avals.size(), false);
  for (Var var : program.equations[first].outputs) made[var.id] = true;
  for (int e = first + 1; e < int(program.equations.size()); ++e) {
    const Equation& equation = program.equations[e];
    reads[e] = std::any_of(equation.inputs.begin(), equation.inputs.end(),
                           [&](const Atom& atom) { return atom.is_var() && made[atom.var().id]; });
    if (!reads[e]) continue;
    for (Var var : equation.outputs) made[var.id] = true;
  }
  return reads;
}

bool mask_alike(const Equation& a, const MaskedParams& first, const Equation& b,
                const MaskedParams& second) {
  if (!first.sizes.empty() || !second.sizes.empty() || first.from_data != second.from_data ||
      first.ragged != second.ragged || !(first.bounds == second.bounds) ||
      first.lanes.size() != second.lanes.size() ||
      !std::equal(a.inputs.begin(), a.inputs.begin() + std::ptrdiff_t(first.num_ragged()),
                  b.inputs.begin()))
    return false;
  for (std::size_t i = 0; i < first.lanes.size(); ++i)
    if (!(first.lanes[i].size == second.lanes[i].size)) return false;
  return true;
}

std::vector<bool> lanes_of(const MaskedParams& masked, std::size_t operand) {
  std::vector<bool> flags;
  for (const Lane& lane : masked.lanes) flags.push_back(lane.batched[operand]);
  return flags;
}

// The index of an atom among the results of an equation.
std::optional<std::size_t> result_of(const Equation& equation, const Atom& atom) {
  for (std::size_t i = 0; i < equation.outputs.size(); ++i)
    if (atom.is_var() && atom.var() == equation.outputs[i]) return i;
  return std::nullopt;
}

// The merged equation under construction.
class Merged {
 public:
  Merged(const Equation& a, const Equation& b) : a_(a), b_(b), first_(a.params), second_(b.params) {
    params_ = first_;
    params_.checked |= second_.checked;
    for (Lane& lane : params_.lanes) lane.batched.clear(), lane.summed.clear();
    for (std::size_t i = 0; i < first_.num_ragged(); ++i)
      add_operand(a.inputs[i], lanes_of(first_, i));
  }

  // outer: the results of the first that others than the second read.
  void build(const std::vector<bool>& outer) {
    const std::size_t n = first_.num_ragged();
    std::vector<Atom> of_first, of_second, outputs;
    for (std::size_t i = n; i < a_.inputs.size(); ++i)
      of_first.push_back(binder_for(a_.inputs[i], lanes_of(first_, i), first_.body->avals[i - n]));
    const std::vector<Atom> made = splice(builder_, first_.body, of_first);
    for (std::size_t i = n; i < b_.inputs.size(); ++i) {
      const auto result = result_of(a_, b_.inputs[i]);
      of_second.push_back(
          result ? made[*result]
                 : binder_for(b_.inputs[i], lanes_of(second_, i), second_.body->avals[i - n]));
    }
    const std::vector<Atom> results = splice(builder_, second_.body, of_second);
    for (std::size_t i = 0; i < made.size(); ++i)
      if (outer[i]) add_output(made[i], first_, i, a_.outputs[i], outputs);
    for (std::size_t i = 0; i < results.size(); ++i)
      add_output(results[i], second_, i, b_.outputs[i], outputs);
    params_.body = builder_.close(outputs, params_.ragged);
  }

  const std::vector<Atom>& operands() const { return operands_; }
  Params params() const { return params_.to_params(); }
  const std::vector<Var>& outputs() const { return replaced_; }  // of the program, in order

 private:
  void add_operand(const Atom& atom, const std::vector<bool>& lanes) {
    operands_.push_back(atom);
    for (std::size_t i = 0; i < params_.lanes.size(); ++i)
      params_.lanes[i].batched.push_back(lanes[i]);
  }
  Atom binder_for(const Atom& atom, const std::vector<bool>& lanes, const Aval& aval) {
    for (std::size_t i = first_.num_ragged(); i < operands_.size(); ++i)
      if (operands_[i] == atom && lanes_of(params_, i) == lanes)
        return binders_[i - first_.num_ragged()];
    add_operand(atom, lanes);
    binders_.push_back(builder_.add_binder(aval));
    return binders_.back();
  }
  void add_output(const Atom& atom, const MaskedParams& from, std::size_t index, Var replaced,
                  std::vector<Atom>& outputs) {
    outputs.push_back(atom);
    replaced_.push_back(replaced);
    for (std::size_t i = 0; i < params_.lanes.size(); ++i)
      params_.lanes[i].summed.push_back(from.lanes[i].sums(index));
  }

  const Equation &a_, &b_;
  const MaskedParams first_, second_;
  MaskedParams params_;
  Builder builder_;
  std::vector<Atom> operands_, binders_;
  std::vector<Var> replaced_;
};

// Whether the second depends on the first only by results that are batched in every lane of both.
bool feeds_directly(const JaxprData& program, int first, int second,
                    const std::vector<bool>& readers) {
  const Equation &a = program.equations[first], &b = program.equations[second];
  const MaskedParams one(a.params), other(b.params);
  if (!readers[second]) return false;
  std::vector<bool> made(program.avals.size(), false);
  for (int e = first + 1; e < second; ++e)
    if (readers[e])
      for (Var var : program.equations[e].outputs) made[var.id] = true;
  for (std::size_t i = 0; i < b.inputs.size(); ++i) {
    if (b.inputs[i].is_var() && made[b.inputs[i].var().id]) return false;
    const auto result = result_of(a, b.inputs[i]);
    if (!result) continue;
    if (i < other.num_ragged()) return false;
    for (std::size_t lane = 0; lane < one.lanes.size(); ++lane)
      if (one.lanes[lane].sums(*result) || !other.lanes[lane].batched[i]) return false;
  }
  return true;
}

// The program with both merged. Equations that depend on the first follow the merged one.
Jaxpr with_merged(const Jaxpr& program, int first, int second, const std::vector<bool>& readers) {
  const Equation &a = program->equations[first], &b = program->equations[second];
  std::vector<bool> outer(a.outputs.size(), false);
  auto note = [&](const Atom& atom) {
    if (const auto result = result_of(a, atom)) outer[*result] = true;
  };
  for (int e = 0; e < int(program->equations.size()); ++e)
    if (e != second)
      std::for_each(program->equations[e].inputs.begin(), program->equations[e].inputs.end(), note);
  std::for_each(program->outputs.begin(), program->outputs.end(), note);
  Merged merged(a, b);
  merged.build(outer);

  Builder builder;
  std::vector<Atom> binders;
  for (const Aval& aval : program->input_avals()) binders.push_back(builder.add_binder(aval));
  Environment environment(program, std::move(binders));
  auto add = [&](const Primitive& primitive, const std::vector<Atom>& inputs, const Params& params,
                 Source source, const std::vector<Var>& outputs) {
    environment.set(outputs, builder.add(primitive, environment.read(inputs), params, source));
  };
  auto add_equations = [&](int begin, int end, bool reading) {
    for (int e = begin; e < end; ++e) {
      const Equation& equation = program->equations[e];
      if (e != first && e != second && readers[e] == reading)
        add(*equation.primitive, equation.inputs, equation.params, equation.source,
            equation.outputs);
    }
  };
  add_equations(0, second, false);
  add(masked_p, merged.operands(), merged.params(), a.source, merged.outputs());
  add_equations(first, second, true);
  for (int e = second + 1; e < int(program->equations.size()); ++e)
    add_equations(e, e + 1, readers[e]);
  return builder.close(environment.read(program->outputs), program->sizes);
}

std::optional<Jaxpr> merged_once(const Jaxpr& program) {
  std::vector<int> masked;
  for (int e = 0; e < int(program->equations.size()); ++e)
    if (*program->equations[e].primitive == masked_p) masked.push_back(e);
  for (std::size_t i = 0; i + 1 < masked.size(); ++i) {
    const std::vector<bool> readers = readers_of(*program, masked[i]);
    const Equation& a = program->equations[masked[i]];
    const MaskedParams first(a.params);
    for (std::size_t j = i + 1; j < masked.size(); ++j) {
      const Equation& b = program->equations[masked[j]];
      if (readers[masked[j]] && mask_alike(a, first, b, MaskedParams(b.params)) &&
          feeds_directly(*program, masked[i], masked[j], readers))
        return with_merged(program, masked[i], masked[j], readers);
    }
  }
  return std::nullopt;
}

}  // namespace

Jaxpr merge_masked(const Jaxpr& program) {
  Jaxpr result = program;
  while (const std::optional<Jaxpr> merged = merged_once(result)) result = *merged;
  return result;
}

}  // namespace plait::compile_passes
