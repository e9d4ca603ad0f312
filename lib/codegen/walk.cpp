// See walk.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/walk.h"

namespace plait::codegen {

Value integer(LoopProgram& program, std::int64_t value) {
  const Literal literal{DType::int64, false, value, 0, 0};
  for (const auto& [known, same] : program.literals)
    if (same == literal) return known;
  const Value number = define(program, DType::int64);
  program.literals.emplace_back(number, literal);
  program.know(number, {value, value});
  return number;
}

Block copy_of(LoopProgram& program, const Block& block, Names& names) {
  Block copies;
  for (const Statement& statement : block) {
    copies.push_back(statement);
    Statement& copy = copies.back();
    for_each_definition(copy, [&](Value& value) {
      const Value own = define(program, program.dtypes[std::size_t(value)]);
      if (const std::optional<Range> known = program.range(value)) program.know(own, *known);
      names[value] = own;
      value = own;
    });
    for (Block& inner : copy.blocks) inner = copy_of(program, inner, names);
    for_each_use(copy, [&](Value& value) { value = named(names, value); });
  }
  return copies;
}

}  // namespace plait::codegen
