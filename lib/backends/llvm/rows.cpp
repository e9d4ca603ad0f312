// Recognising groups with reductions. See rows.h.
// SPDX-License-Identifier: Apache-2.0
#include "rows.h"

#include <plait/primitives/primitives.h>

#include <unordered_map>

#include "picks.h"
#include "primitives.h"
#include "primitives/reduction/reduce.h"

namespace plait::llvm {
namespace {

constexpr std::int64_t shortest_row = 8, longest_row = 1 << 16;
// Fewer rows than threads leave threads idle, which shows where there is much to do.
constexpr std::int64_t fewest_rows = 8, fewest_blocks = 4, small = 1 << 14;

class Finder {
 public:
  Finder(const JaxprData& program, std::span<const int> equations)
      : program_(program),
        equations_(equations),
        is_row_(program.avals.size(), false),
        is_column_(program.avals.size(), false) {}

  bool run() {
    if (!find_shape()) return false;
    for (int index : equations_) {
      const Equation& equation = program_.equations[index];
      if (equation.outputs.size() != 1 || !place(equation)) return false;  // effects, for one
      definition_.emplace(equation.outputs[0].id, &equation);
    }
    return true;
  }

 private:
  Sizes64 sizes(int var) const { return program_.avals[var].shape.to_sizes(); }

  bool find_shape() {
    for (int index : equations_) {
      const Equation& equation = program_.equations[index];
      if (!(*equation.primitive == reduce_p)) continue;
      if (!equation.inputs[0].is_var()) return false;
      const Aval& input = program_.aval(equation.inputs[0]);
      if (!is_row_reduction(equation, input)) continue;
      shape_ = input.shape.to_sizes();
      num_outer_ = int(shape_.size()) - equation.params.get<Shape>("axes").rank();
      outer_ = without_ones(Sizes64(shape_.begin(), shape_.begin() + num_outer_));
      return true;
    }
    return false;
  }

  bool is_row_shape(const Sizes64& shape) const { return without_ones(shape) == outer_; }

  bool is_row(const Atom& atom) const { return atom.is_var() && is_row_[atom.var().id]; }

  // Whether it belongs to the rows, with those before it.
  bool place(const Equation& equation) {
    const Primitive& primitive = *equation.primitive;
    const int out = equation.outputs[0].id;
    for (const Atom& atom : equation.inputs)
      if (atom.is_var() && is_column_[atom.var().id]) return false;
    if (primitive == reduce_p) return place_reduction(equation);
    if (is_everywhere(equation) || is_counting(equation)) return true;
    if (is_one_for_rows(equation)) return is_row_[out] = true;
    if (primitive == reshape_p || primitive == broadcast_in_dim_p) return place_view(equation);
    if (primitive == gather_p || primitive == scatter_p) return place_pick(equation);
    const bool is_full = sizes(out) == shape_;
    is_row_[out] = !is_full;
    if (!is_full && !is_row_shape(sizes(out))) return false;
    for (const Atom& atom : equation.inputs) {
      if (!atom.is_var() || program_.aval(atom).rank() == 0) continue;
      if (!(sizes(atom.var().id) == sizes(out))) return false;
    }
    return is_elementwise_of(equation);
  }

  bool place_reduction(const Equation& equation) {
    const Atom& input = equation.inputs[0];
    const int out = equation.outputs[0].id;
    if (!input.is_var() || is_row(input) || !(sizes(input.var().id) == shape_)) return false;
    if (is_column_reduction(equation)) return is_column_[out] = true;
    return is_row_[out] =
               is_row_reduction(equation, program_.aval(input)) &&
               int(shape_.size()) - equation.params.get<Shape>("axes").rank() == num_outer_;
  }

  // Over all rows, as a stage by columns, with blocks for all threads.
  bool is_column_reduction(const Equation& equation) const {
    if (!may_reduce(equation, program_.aval(equation.inputs[0]).dtype)) return false;
    const std::vector<int> axes = equation.params.ints("axes");
    if (int(axes.size()) != num_outer_ || axes.empty() || axes.back() != num_outer_ - 1)
      return false;
    const ReductionStages stages = reduction_stages(shape_, axes);
    return stages.size() == 1 && !stages[0].is_by_rows() &&
           stages[0].n * stages[0].inner == num_elements(shape_) &&
           (stages[0].num_blocks() >= fewest_blocks || num_elements(shape_) <= small);
  }

  // A number that is the same for all rows.
  bool is_one_for_rows(const Equation& equation) const {
    if (!(*equation.primitive == broadcast_in_dim_p)) return false;
    const Aval input = program_.aval(equation.inputs[0]);
    return input.rank() == 0 && is_row_shape(sizes(equation.outputs[0].id));
  }

  // A number for every element of the shape.
  bool is_everywhere(const Equation& equation) const {
    return *equation.primitive == broadcast_in_dim_p &&
           program_.aval(equation.inputs[0]).rank() == 0 && sizes(equation.outputs[0].id) == shape_;
  }

  // The places along a row.
  bool is_counting(const Equation& equation) const {
    const int out = equation.outputs[0].id, last = int(shape_.size()) - 1;
    return *equation.primitive == iota_p && sizes(out) == shape_ && num_outer_ == last &&
           equation.params.integer("axis") == last && can_count(program_.avals[out].dtype);
  }

  // An element of every row, or a change of one.
  bool place_pick(const Equation& equation) {
    const Atom &operand = equation.inputs[0], &rows = equation.inputs[1];
    const int out = equation.outputs[0].id;
    if (!picks_one(program_, equation) || !operand.is_var() || !rows.is_var() ||
        num_outer_ + 1 != int(shape_.size()) || !(sizes(operand.var().id) == shape_) ||
        is_row(operand))
      return false;
    if (checks_indices(equation) && definition_.count(rows.var().id)) return false;
    is_row_[out] = *equation.primitive == gather_p;
    if (is_row_[out]) return is_recomputed(operand.var().id);
    const Atom& update = equation.inputs[2];
    return !update.is_var() || program_.aval(update).rank() == 0 ||
           is_row_shape(sizes(update.var().id));
  }

  // Whether single elements of a value can be computed once more.
  bool is_recomputed(int var) const {
    const auto found = definition_.find(var);
    if (found == definition_.end() || is_row_[var]) return true;
    const Equation& equation = *found->second;
    if (is_everywhere(equation)) return true;
    if (!is_elementwise_of(equation)) return false;
    return std::all_of(equation.inputs.begin(), equation.inputs.end(), [&](const Atom& atom) {
      return !atom.is_var() || is_recomputed(atom.var().id);
    });
  }

  bool is_elementwise_of(const Equation& equation) const {
    std::vector<Aval> inputs;
    for (const Atom& atom : equation.inputs) inputs.push_back(program_.aval(atom));
    return is_elementwise(equation, inputs, std::span(&program_.avals[equation.outputs[0].id], 1));
  }

  // A number per row, seen as such under another shape or by every element of its row.
  bool place_view(const Equation& equation) {
    if (!is_row(equation.inputs[0])) return false;
    const int out = equation.outputs[0].id;
    is_row_[out] = true;
    const Sizes64 from = sizes(equation.inputs[0].var().id), to = sizes(out);
    if (*equation.primitive == reshape_p) return is_row_shape(from) && is_row_shape(to);
    if (!is_row_shape(from)) return false;
    const std::vector<int> dims = equation.params.ints("dims");
    for (std::size_t i = 0; i < from.size(); ++i)
      if (from[i] != 1 && (to[dims[i]] != from[i] || (to == shape_ && dims[i] >= num_outer_)))
        return false;
    return to == shape_ || is_row_shape(to);
  }

  const JaxprData& program_;
  const std::span<const int> equations_;
  Sizes64 shape_;      // of what is reduced
  int num_outer_ = 0;  // its leading axes, which count rows; the others are a row's
  Sizes64 outer_;      // these, without axes of size 1
  std::vector<bool> is_row_, is_column_;                 // by var
  std::unordered_map<int, const Equation*> definition_;  // by var, of those that are placed
};

}  // namespace

Sizes64 without_ones(const Sizes64& sizes) {
  Sizes64 kept;
  for (std::int64_t size : sizes)
    if (size != 1) kept.push_back(size);
  return kept;
}

bool is_row_reduction(const Equation& equation, const Aval& input) {
  if (!(*equation.primitive == reduce_p) || !may_reduce(equation, input.dtype)) return false;
  const std::vector<int> axes = equation.params.ints("axes");
  const int outer = input.rank() - int(axes.size());
  if (axes.empty() || axes[0] != outer) return false;  // increasing, so these are the last ones
  const Sizes64 sizes = input.shape.to_sizes();
  if (reduction_stages(sizes, axes).size() > 1) return false;
  std::int64_t count = 1, length = 1;
  for (int i = 0; i < input.rank(); ++i) (i < outer ? count : length) *= sizes[i];
  return length >= shortest_row && length <= longest_row && count > 0 &&
         (count >= fewest_rows || count * length <= small);
}

bool are_of_rows(const JaxprData& program, std::span<const int> equations) {
  return Finder(program, equations).run();
}

}  // namespace plait::llvm
