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
constexpr int never = 1 << 20;  // a pass

class Finder {
 public:
  Finder(const JaxprData& program, std::span<const int> equations)
      : program_(program), equations_(equations) {}

  std::optional<Rows> run() {
    if (!find_shape()) return {};
    rows_.is_row.assign(program_.avals.size(), false);
    rows_.is_column.assign(program_.avals.size(), false);
    rows_.pass.assign(program_.equations.size(), 0);
    ready_.assign(program_.avals.size(), 0);
    for (int index : equations_) {
      if (!place(index)) return {};
      definition_.emplace(program_.equations[index].outputs[0].id, index);
    }
    return std::move(rows_);
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
      rows_.shape = input.shape.to_sizes();
      rows_.num_outer = int(rows_.shape.size()) - equation.params.get<Shape>("axes").rank();
      for (int i = 0; i < int(rows_.shape.size()); ++i)
        (i < rows_.num_outer ? rows_.count : rows_.length) *= rows_.shape[i];
      outer_ = without_ones(Sizes64(rows_.shape.begin(), rows_.shape.begin() + rows_.num_outer));
      return true;
    }
    return false;
  }

  bool is_row_shape(const Sizes64& shape) const { return without_ones(shape) == outer_; }

  // The pass from which on an operand is there.
  int ready(const Atom& atom) const { return atom.is_var() ? ready_[atom.var().id] : 0; }

  bool place(int index) {
    const Equation& equation = program_.equations[index];
    const Primitive& primitive = *equation.primitive;
    if (equation.outputs.size() != 1) return false;  // effects, for one
    const int out = equation.outputs[0].id;
    int pass = 0;
    for (const Atom& atom : equation.inputs) pass = std::max(pass, ready(atom));
    if (pass >= never) return false;
    rows_.pass[index] = ready_[out] = pass;
    if (primitive == reduce_p) {
      const Atom& input = equation.inputs[0];
      if (is_column_reduction(equation)) {
        rows_.is_column[out] = true;
        ready_[out] = never;
        rows_.num_passes = std::max(rows_.num_passes, pass + 1);
        return true;
      }
      if (!input.is_var() || rows_.is_row[input.var().id] ||
          !is_row_reduction(equation, program_.aval(input)) ||
          !(sizes(input.var().id) == rows_.shape) ||
          int(rows_.shape.size()) - equation.params.get<Shape>("axes").rank() != rows_.num_outer)
        return false;
      rows_.is_row[out] = true;
      ready_[out] = pass + 1;
      rows_.num_passes = std::max(rows_.num_passes, pass + 1);
      return true;
    }
    if (is_everywhere(equation) || is_counting(equation)) return true;
    if (is_one_for_rows(equation)) return rows_.is_row[out] = true;
    if (primitive == reshape_p || primitive == broadcast_in_dim_p) return place_view(equation);
    if (primitive == gather_p || primitive == scatter_p) return place_pick(equation, pass);
    const bool is_full = sizes(out) == rows_.shape;
    rows_.is_row[out] = !is_full;
    if (!is_full && !is_row_shape(sizes(out))) return false;
    for (const Atom& atom : equation.inputs) {
      if (!atom.is_var() || program_.aval(atom).rank() == 0) continue;
      if (!(sizes(atom.var().id) == sizes(out))) return false;
    }
    if (is_full) rows_.num_passes = std::max(rows_.num_passes, pass + 1);
    return is_elementwise_of(equation);
  }

  // Over all rows, as a stage by columns, with blocks for all threads.
  bool is_column_reduction(const Equation& equation) const {
    const Atom& input = equation.inputs[0];
    if (!input.is_var() || rows_.is_row[input.var().id] ||
        !has_registers(program_.aval(input).dtype) || !(sizes(input.var().id) == rows_.shape))
      return false;
    const std::vector<int> axes = equation.params.ints("axes");
    if (int(axes.size()) != rows_.num_outer || axes.empty() || axes.back() != rows_.num_outer - 1)
      return false;
    const ReductionStages stages = reduction_stages(rows_.shape, axes);
    return stages.size() == 1 && !stages[0].is_by_rows() && stages[0].n == rows_.count &&
           stages[0].inner == rows_.length &&
           (stages[0].num_blocks() >= fewest_blocks || rows_.count * rows_.length <= small);
  }

  // A number that is the same for all rows.
  bool is_one_for_rows(const Equation& equation) const {
    if (!(*equation.primitive == broadcast_in_dim_p)) return false;
    const Aval input = program_.aval(equation.inputs[0]);
    return input.rank() == 0 && has_registers(input.dtype) &&
           is_row_shape(sizes(equation.outputs[0].id));
  }

  // A number for every element of the shape.
  bool is_everywhere(const Equation& equation) const {
    return *equation.primitive == broadcast_in_dim_p &&
           program_.aval(equation.inputs[0]).rank() == 0 &&
           has_registers(program_.aval(equation.inputs[0]).dtype) &&
           sizes(equation.outputs[0].id) == rows_.shape;
  }

  // The places along a row.
  bool is_counting(const Equation& equation) const {
    const int out = equation.outputs[0].id, last = int(rows_.shape.size()) - 1;
    return *equation.primitive == iota_p && sizes(out) == rows_.shape && rows_.num_outer == last &&
           equation.params.integer("axis") == last && can_count(program_.avals[out].dtype);
  }

  // An element of every row, or a change of one.
  bool place_pick(const Equation& equation, int pass) {
    const Atom &operand = equation.inputs[0], &rows = equation.inputs[1];
    const int out = equation.outputs[0].id;
    if (!picks_one(program_, equation) || !operand.is_var() || !rows.is_var() ||
        rows_.num_outer + 1 != int(rows_.shape.size()) ||
        !(sizes(operand.var().id) == rows_.shape) || rows_.is_row[operand.var().id] ||
        !has_registers(program_.avals[out].dtype))
      return false;
    if (checks_indices(equation) && definition_.count(rows.var().id)) return false;
    rows_.is_row[out] = *equation.primitive == gather_p;
    if (rows_.is_row[out]) return is_recomputed(operand.var().id);
    const Atom& update = equation.inputs[2];
    rows_.num_passes = std::max(rows_.num_passes, pass + 1);
    return !update.is_var() || program_.aval(update).rank() == 0 ||
           is_row_shape(sizes(update.var().id));
  }

  // Whether single elements of a value can be computed once more.
  bool is_recomputed(int var) const {
    const auto found = definition_.find(var);
    if (found == definition_.end() || rows_.is_row[var]) return true;
    const Equation& equation = program_.equations[found->second];
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
    if (!equation.inputs[0].is_var() || !rows_.is_row[equation.inputs[0].var().id]) return false;
    const int out = equation.outputs[0].id;
    rows_.is_row[out] = true;
    const Sizes64 from = sizes(equation.inputs[0].var().id), to = sizes(out);
    if (*equation.primitive == reshape_p) return is_row_shape(from) && is_row_shape(to);
    if (!is_row_shape(from)) return false;
    const std::vector<int> dims = equation.params.ints("dims");
    for (std::size_t i = 0; i < from.size(); ++i)
      if (from[i] != 1 &&
          (to[dims[i]] != from[i] || (to == rows_.shape && dims[i] >= rows_.num_outer)))
        return false;
    return to == rows_.shape || is_row_shape(to);
  }

  const JaxprData& program_;
  const std::span<const int> equations_;
  Rows rows_;
  Sizes64 outer_;                            // without axes of size 1
  std::vector<int> ready_;                   // by var
  std::unordered_map<int, int> definition_;  // by var: the equation, of those that are placed
};

}  // namespace

Sizes64 without_ones(const Sizes64& sizes) {
  Sizes64 kept;
  for (std::int64_t size : sizes)
    if (size != 1) kept.push_back(size);
  return kept;
}

bool is_row_reduction(const Equation& equation, const Aval& input) {
  if (!(*equation.primitive == reduce_p) || !has_registers(input.dtype)) return false;
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

std::optional<Rows> find_rows(const JaxprData& program, std::span<const int> equations) {
  return Finder(program, equations).run();
}

}  // namespace plait::llvm
