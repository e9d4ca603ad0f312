// See picks.h.
// SPDX-License-Identifier: Apache-2.0
#include "picks.h"

#include <plait/primitives/primitives.h>

#include "primitives/indexing/index_rows.h"

namespace plait::llvm {
namespace {

using Places = Lane<std::int64_t>;

Builder here() { return Emitter::current().builder(); }

bool is_gather(const Equation& equation) { return *equation.primitive == gather_p; }

Sizes64 window_of(const JaxprData& program, const Equation& equation) {
  if (is_gather(equation)) return equation.params.get<Shape>("slice_sizes").to_sizes();
  return indexing::window_sizes(program.aval(equation.inputs[0]).rank(),
                                program.aval(equation.inputs[2]).shape.to_sizes(),
                                indexing::dimensions_of(equation.params));
}

}  // namespace

bool checks_indices(const Equation& equation) {
  return (is_gather(equation) || *equation.primitive == scatter_p) &&
         indexing::checks(equation.params);
}

IndexChecks::IndexChecks(const JaxprData& group) {
  for (const Equation& equation : group.equations) {
    if (!checks_indices(equation)) continue;
    const Aval operand = group.aval(equation.inputs[0]);
    const Sizes64 shape = operand.shape.to_sizes();
    checks_.push_back({&equation, View{nullptr, operand.dtype, shape, dense_strides(shape)},
                       window_of(group, equation)});
  }
}

void IndexChecks::run(std::span<const View> inputs) const {
  for (const Check& check : checks_) {
    const Equation& equation = *check.equation;
    indexing::IndexRows(equation.primitive->name(), check.operand,
                        inputs[equation.inputs[1].var().id], equation.params, check.window)
        .check();
  }
}

bool picks_one(const JaxprData& program, const Equation& equation) {
  if (!is_gather(equation) && !(*equation.primitive == scatter_p)) return false;
  const lax::IndexDimensions dimensions = indexing::dimensions_of(equation.params);
  const Aval operand = program.aval(equation.inputs[0]), rows = program.aval(equation.inputs[1]);
  const int last = operand.rank() - 1;
  if (last < 0 || dimensions.batch_dims != last || dimensions.axes != std::vector<int>{last} ||
      rows.dtype == DType::uint64)
    return false;
  const Sizes64 sizes = operand.shape.to_sizes(), row_sizes = rows.shape.to_sizes();
  if (window_of(program, equation)[0] != 1 || sizes[last] == 0) return false;
  for (std::size_t i = std::size_t(last); i < row_sizes.size(); ++i)
    if (row_sizes[i] != 1) return false;
  if (is_gather(equation)) return true;
  const std::string& kind = equation.params.text("kind");
  return kind == "set" || (kind == "add" && !is_bool(operand.dtype));
}

Value picked_place(const JaxprData& program, const Equation& equation, const Register& row) {
  using Mode = lax::GatherScatterMode;
  Value v = row.v;
  if (size_of(row.dtype) < 8) {
    auto* const extend = is_signed_integer(row.dtype) ? api().BuildSExt : api().BuildZExt;
    v = extend(here(), v, Emitter::current().vector(Emitter::current().integer(64)), "");
  }
  const Mode mode = indexing::mode_of(equation.params);
  if (mode != Mode::clip && mode != Mode::promise) return v;
  const Aval operand = program.aval(equation.inputs[0]);
  const std::int64_t last = operand.shape.to_sizes()[std::size_t(operand.rank() - 1)] - 1;
  return lesser(greater(Places::of(v), Places(0)), Places(last)).v;
}

Register scatter_one(const Equation& equation, const Register& operand, Mask is_here,
                     const Register& update) {
  Register changed = update;
  if (equation.params.text("kind") == "add") {
    Equation sum;
    sum.primitive = &add_p;
    const Register operands[] = {operand, update};
    changed = lower(sum, operands, operand.dtype);
  }
  return {detail::choose(is_here, changed.v, operand.v), operand.dtype};
}

}  // namespace plait::llvm
