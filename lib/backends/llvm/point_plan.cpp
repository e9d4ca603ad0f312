// Recognising groups of functions of places. See point_plan.h.
// SPDX-License-Identifier: Apache-2.0
#include "point_plan.h"

#include <plait/primitives/primitives.h>

#include <algorithm>
#include <unordered_map>

#include "picks.h"
#include "rows.h"
#include "segments.h"

namespace plait::llvm {
namespace {

constexpr std::size_t most_nests = 3;
constexpr double most_repeated = 16;  // weight that several nests compute
constexpr double most_expanded = 8;   // weight that is computed again for every row
constexpr double most_weight = 600;
constexpr std::int64_t expansion = 8;  // what is so much smaller than the loops is expanded
constexpr std::int64_t shortest_lanes = 8, small = 4096;

bool is_view(const Equation& equation) {
  const Primitive& p = *equation.primitive;
  return equation.inputs.size() == 1 && equation.inputs[0].is_var() &&
         (p == broadcast_in_dim_p || p == reshape_p || p == transpose_p || p == slice_p ||
          p == rev_p);
}

class Planner {
 public:
  Planner(const JaxprData& program, std::span<const int> equations, bool at_any_cost)
      : program_(program), equations_(equations), at_any_cost_(at_any_cost) {}

  std::optional<std::vector<PointNest>> run(std::span<const int> results) {
    for (int index : equations_) {
      for (Var var : program_.equations[index].outputs) defined_.emplace(var.id, index);
      if (!check(program_.equations[index])) return {};
    }
    for (int var : results)
      if (!place(var)) return {};
    if (nests_.size() > most_nests && !at_any_cost_) return {};
    double all = 0, total = 0;
    for (int index : equations_) all += weight(index);
    for (PointNest& nest : nests_) {
      collect(nest);
      if (!can_follow(nest) || !(at_any_cost_ || is_worth_it(nest))) return {};
      for (int index : nest.equations) total += weight(index);
    }
    if (!at_any_cost_ && (total - all > most_repeated || all > most_weight)) return {};
    return std::move(nests_);
  }

 private:
  Sizes64 sizes(int var) const { return program_.avals[var].shape.to_sizes(); }
  double weight(int index) const {
    const Equation& equation = program_.equations[index];
    return is_view(equation) ? 0 : weight_of(equation);
  }

  bool is_reduction(const Equation& equation) const {
    return *equation.primitive == reduce_p && !is_written_out(program_, equation);
  }

  bool check(const Equation& equation) {
    for (const Atom& atom : equation.inputs)
      if (atom.is_var() && reductions_.count(atom.var().id)) return false;
    has_reduction_ |= *equation.primitive == reduce_p;
    if (*equation.primitive == reduce_p && is_reduction(equation)) {
      const Aval& input = program_.aval(equation.inputs[0]);
      if (!equation.inputs[0].is_var() || !has_registers(input.dtype) || input.stack != 0 ||
          is_row_reduction(equation, input) || num_elements(input.shape.to_sizes()) == 0)
        return false;
      reductions_.emplace(equation.outputs[0].id, &equation);
      return true;
    }
    if (checks_indices(equation)) {
      // Rows of indices are checked before the loops.
      const Atom& rows = equation.inputs[1];
      if (!rows.is_var() || defined_.count(rows.var().id)) return false;
    }
    return is_pointwise(program_, equation);
  }

  bool place(int var) {
    const auto found = reductions_.find(var);
    const bool reduces = found != reductions_.end();
    const Sizes64 shape = reduces ? sizes(found->second->inputs[0].var().id) : sizes(var);
    const std::vector<int> axes = reduces ? found->second->params.ints("axes") : std::vector<int>{};
    auto nest = std::find_if(nests_.begin(), nests_.end(), [&](const PointNest& other) {
      return other.shape == shape && (!reduces || other.axes.empty() || other.axes == axes);
    });
    if (nest == nests_.end()) {
      nests_.push_back({});
      nest = nests_.end() - 1;
      nest->shape = shape;
    }
    if (!reduces) {
      nest->stored.push_back(var);
    } else {
      nest->reduced.push_back(var);
      nest->axes = axes;
      nest->stages = reduction_stages(shape, axes);
      nest->kind = nest->stages[0].is_by_rows() ? PointNest::Kind::rows : PointNest::Kind::columns;
    }
    // A store beside rows that are several numbers wide would jump.
    return nest->kind != PointNest::Kind::rows || nest->stages[0].inner == 1 ||
           nest->stored.empty();
  }

  void collect(PointNest& nest) {
    std::vector<bool> needed(program_.avals.size(), false);
    for (int var : nest.stored) needed[var] = true;
    for (int var : nest.reduced) needed[reductions_.at(var)->inputs[0].var().id] = true;
    for (std::size_t i = equations_.size(); i-- > 0;) {
      const Equation& equation = program_.equations[equations_[i]];
      const int out = equation.outputs[0].id;
      if (!needed[out] || reductions_.count(out)) continue;
      nest.equations.push_back(equations_[i]);
      for (const Atom& atom : equation.inputs)
        if (atom.is_var()) needed[atom.var().id] = true;
    }
    std::reverse(nest.equations.begin(), nest.equations.end());
  }

  // Rows over several axes can only be followed where these may be merged.
  bool can_follow(const PointNest& nest) const {
    return nest.kind != PointNest::Kind::rows || first_axes(nest.shape, nest.axes).size() <= 1 ||
           is_plain(program_, nest);
  }

  bool is_worth_it(const PointNest& nest) const {
    const std::int64_t size = num_elements(nest.shape);
    double expanded = 0;
    for (int index : nest.equations) {
      const Equation& equation = program_.equations[index];
      if (num_elements(sizes(equation.outputs[0].id)) * expansion < size &&
          !(*equation.primitive == iota_p))
        expanded += weight(index);
    }
    if (expanded > most_expanded) return false;
    return nest.kind != PointNest::Kind::map || has_reduction_ || size <= small ||
           nest.shape.empty() || nest.shape.back() >= shortest_lanes;
  }

  const JaxprData& program_;
  const std::span<const int> equations_;
  const bool at_any_cost_;
  std::unordered_map<int, int> defined_;                 // by var
  std::unordered_map<int, const Equation*> reductions_;  // by var
  bool has_reduction_ = false;
  std::vector<PointNest> nests_;
};

}  // namespace

bool is_plain(const JaxprData& program, const PointNest& nest) {
  for (int index : nest.equations) {
    const Equation& equation = program.equations[index];
    std::vector<Aval> inputs;
    for (const Atom& atom : equation.inputs) {
      inputs.push_back(program.aval(atom));
      const Shape& shape = inputs.back().shape;
      if (!shape.empty() && !(shape.to_sizes() == nest.shape)) return false;
    }
    const Aval& output = program.avals[equation.outputs[0].id];
    if (!(output.shape.to_sizes() == nest.shape) ||
        !is_elementwise(equation, inputs, std::span(&output, 1)))
      return false;
  }
  return true;
}

std::vector<int> first_axes(const Sizes64& shape, const std::vector<int>& axes) {
  const std::int64_t n = reduction_stages(shape, axes)[0].n;
  std::vector<int> first;
  std::int64_t size = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend() && size < n; ++axis) {
    if (shape[*axis] == 1) continue;
    first.insert(first.begin(), *axis);
    size *= shape[*axis];
  }
  return first;
}

std::optional<std::vector<PointNest>> find_points(const JaxprData& program,
                                                  std::span<const int> equations,
                                                  std::span<const int> results, bool at_any_cost) {
  return Planner(program, equations, at_any_cost).run(results);
}

std::vector<int> results_of(const JaxprData& program, std::span<const int> equations,
                            std::span<const int> uses) {
  std::unordered_map<int, int> inner;
  for (int index : equations)
    for (const Atom& atom : program.equations[index].inputs)
      if (atom.is_var()) ++inner[atom.var().id];
  std::vector<int> results;
  for (std::size_t i = equations.size(); i-- > 0;) {
    const Equation& equation = program.equations[equations[i]];
    for (Var var : equation.outputs) {
      if (uses[var.id] <= inner[var.id]) continue;
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
