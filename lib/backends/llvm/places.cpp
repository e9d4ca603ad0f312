// See places.h.
// SPDX-License-Identifier: Apache-2.0
#include "places.h"

#include <plait/primitives/primitives.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "codegen/work.h"
#include "picks.h"
#include "primitives.h"
#include "primitives/reduction/reduce.h"
#include "rows.h"

namespace plait::llvm {
namespace {

constexpr std::size_t most_loops = 3;
constexpr double most_repeated = 16;  // weight that several loops need
constexpr double most_expanded = 8;   // weight of what is small, but computed for every row
constexpr double most_weight = 600;
constexpr std::int64_t expansion = 8;  // what is so much smaller than the loops is expanded
constexpr std::int64_t shortest_lanes = 8, small = 4096;
constexpr std::int64_t longest_written_out = 8;
constexpr std::size_t most_parts = 8;  // of a concatenation

bool is_view(const Equation& equation) {
  const Primitive& p = *equation.primitive;
  return equation.inputs.size() == 1 && equation.inputs[0].is_var() &&
         (p == broadcast_in_dim_p || p == reshape_p || p == transpose_p || p == slice_p ||
          p == rev_p);
}

// So short that the elements of each result are written out.
bool is_written_out(const JaxprData& program, const Equation& reduction) {
  const ReductionStages stages = reduction_stages(
      program.aval(reduction.inputs[0]).shape.to_sizes(), reduction.params.ints("axes"));
  return stages.size() == 1 && stages[0].n <= longest_written_out;
}

bool has_plain_elements(const Aval& aval) {
  return aval.stack == 0 && num_elements(aval.shape.to_sizes()) > 0;
}

// Whether each element of the result is made of a few elements of the operands.
bool is_of_places(const JaxprData& program, const Equation& equation) {
  std::vector<Aval> inputs, outputs;
  for (const Atom& atom : equation.inputs) inputs.push_back(program.aval(atom));
  for (Var var : equation.outputs) outputs.push_back(program.avals[std::size_t(var.id)]);
  if (outputs.size() != 1 || !has_plain_elements(outputs[0]) ||
      !std::all_of(inputs.begin(), inputs.end(), has_plain_elements))
    return false;
  const Primitive& p = *equation.primitive;
  if (is_elementwise(equation, inputs, outputs) || p == broadcast_in_dim_p || p == transpose_p ||
      p == slice_p || p == rev_p || p == random_bits_p)
    return true;
  if (p == reshape_p)
    return without_ones(inputs[0].shape.to_sizes()) == without_ones(outputs[0].shape.to_sizes());
  if (p == iota_p) return can_count(outputs[0].dtype);
  if (p == pad_p) {
    const Shape interior = equation.params.get<Shape>("interior");
    return std::all_of(interior.begin(), interior.end(), [](Dim dim) { return dim == Dim(0); });
  }
  if (p == concatenate_p) return inputs.size() <= most_parts;
  if (p == reduce_p)
    return equation.inputs[0].is_var() && may_reduce(equation, inputs[0].dtype) &&
           is_written_out(program, equation);
  const auto is_index = [](const Aval& aval) { return aval.dtype != DType::uint64; };
  if (p == gather_p) return is_index(inputs[1]);
  if (p == scatter_p) return picks_one(program, equation);
  if (p == dynamic_slice_p) return std::all_of(inputs.begin() + 1, inputs.end(), is_index);
  return false;
}

class Group {
 public:
  Group(const JaxprData& program, std::span<const int> equations)
      : program_(program), equations_(equations) {}

  bool is_worth_it(std::span<const int> results) {
    double all = 0, total = 0;
    for (int index : equations_) {
      if (!add(equation(index))) return false;
      all += weight(index);
    }
    for (int var : results) place(var);
    if (loops_.size() > most_loops || all > most_weight) return false;
    for (const Loop& loop : loops_) {
      const std::vector<int> needed = needed_by(loop);
      if (!is_worth_it(loop, needed)) return false;
      for (int index : needed) total += weight(index);
    }
    return total - all <= most_repeated;
  }

 private:
  // Over one shape: what it stores, and what it reduces over the same axes.
  struct Loop {
    Sizes64 shape;
    std::vector<int> axes;
    std::vector<int>
        vars;  // that it computes: the operands of reductions, in place of their results
  };

  const Equation& equation(int index) const { return program_.equations[std::size_t(index)]; }
  Sizes64 sizes(int var) const { return program_.avals[std::size_t(var)].shape.to_sizes(); }
  double weight(int index) const {
    return is_view(equation(index)) ? 0 : codegen::instructions_of(*equation(index).primitive);
  }

  bool add(const Equation& equation) {
    const bool reads_reduced = std::any_of(
        equation.inputs.begin(), equation.inputs.end(),
        [&](const Atom& atom) { return atom.is_var() && reductions_.count(atom.var().id) > 0; });
    if (reads_reduced) return false;
    // What may raise an error waits for nothing else.
    if (checks_indices(equation) &&
        (!equation.inputs[1].is_var() || defined_.count(equation.inputs[1].var().id) > 0))
      return false;
    for (Var var : equation.outputs) defined_.insert(var.id);
    has_reduction_ |= *equation.primitive == reduce_p;
    if (*equation.primitive != reduce_p || is_written_out(program_, equation))
      return is_of_places(program_, equation);
    const Aval input = program_.aval(equation.inputs[0]);
    if (!equation.inputs[0].is_var() || !has_plain_elements(input) ||
        !may_reduce(equation, input.dtype) || is_row_reduction(equation, input))
      return false;
    reductions_.emplace(equation.outputs[0].id, &equation);
    return true;
  }

  void place(int var) {
    const auto found = reductions_.find(var);
    const bool reduces = found != reductions_.end();
    const int computed = reduces ? found->second->inputs[0].var().id : var;
    const Sizes64 shape = sizes(computed);
    const std::vector<int> axes = reduces ? found->second->params.ints("axes") : std::vector<int>{};
    auto loop = std::find_if(loops_.begin(), loops_.end(), [&](const Loop& other) {
      return other.shape == shape && (!reduces || other.axes.empty() || other.axes == axes);
    });
    if (loop == loops_.end()) loop = loops_.insert(loop, {shape, {}, {}});
    if (reduces) loop->axes = axes;
    loop->vars.push_back(computed);
  }

  std::vector<int> needed_by(const Loop& loop) const {
    std::unordered_set<int> needed(loop.vars.begin(), loop.vars.end());
    std::vector<int> found;
    for (std::size_t i = equations_.size(); i-- > 0;) {
      const Equation& each = equation(equations_[i]);
      const int out = each.outputs[0].id;
      if (!needed.count(out) || reductions_.count(out)) continue;
      found.push_back(equations_[i]);
      for (const Atom& atom : each.inputs)
        if (atom.is_var()) needed.insert(atom.var().id);
    }
    return found;
  }

  bool is_worth_it(const Loop& loop, const std::vector<int>& needed) const {
    const std::int64_t size = num_elements(loop.shape);
    double expanded = 0;
    for (int index : needed)
      if (num_elements(sizes(equation(index).outputs[0].id)) * expansion < size &&
          *equation(index).primitive != iota_p)
        expanded += weight(index);
    if (expanded > most_expanded) return false;
    return !loop.axes.empty() || has_reduction_ || size <= small || loop.shape.empty() ||
           loop.shape.back() >= shortest_lanes;
  }

  const JaxprData& program_;
  const std::span<const int> equations_;
  std::unordered_set<int> defined_;                      // vars
  std::unordered_map<int, const Equation*> reductions_;  // by var
  bool has_reduction_ = false;
  std::vector<Loop> loops_;
};

}  // namespace

bool are_of_places(const JaxprData& program, std::span<const int> equations,
                   std::span<const int> results) {
  return Group(program, equations).is_worth_it(results);
}

std::vector<int> results_of(const JaxprData& program, std::span<const int> equations,
                            std::span<const int> uses) {
  std::unordered_map<int, int> inner;
  for (int index : equations)
    for (const Atom& atom : program.equations[std::size_t(index)].inputs)
      if (atom.is_var()) ++inner[atom.var().id];
  std::vector<int> results;
  for (std::size_t i = equations.size(); i-- > 0;) {
    const Equation& equation = program.equations[std::size_t(equations[i])];
    for (Var var : equation.outputs) {
      if (uses[std::size_t(var.id)] <= inner[var.id]) continue;
      if (is_view(equation))
        --inner[equation.inputs[0].var().id];  // it reads for others
      else
        results.push_back(var.id);
    }
  }
  std::reverse(results.begin(), results.end());
  return results;
}

}  // namespace plait::llvm
