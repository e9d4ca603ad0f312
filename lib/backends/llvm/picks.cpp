// See picks.h.
// SPDX-License-Identifier: Apache-2.0
#include "picks.h"

#include <plait/primitives/primitives.h>

#include "primitives/indexing/index_rows.h"

namespace plait::llvm {
namespace {

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

}  // namespace plait::llvm
