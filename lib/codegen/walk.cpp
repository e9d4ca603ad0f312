// See walk.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/walk.h"

#include <plait/primitives/emitted.h>
#include <plait/primitives/primitives.h>

#include <algorithm>

namespace plait::codegen {

bool goes_through_rows(const Statement& loop) {
  return std::all_of(loop.blocks[0].begin(), loop.blocks[0].end(), [](const Statement& s) {
    switch (s.kind) {
      case Statement::Kind::compute:
      case Statement::Kind::load:
      case Statement::Kind::store:
      case Statement::Kind::combine:
        return true;
      case Statement::Kind::repeat:
        return runs_in_any_order(s) && goes_through_rows(s);
      default:
        return false;
    }
  });
}

bool only_checks(const Statement& loop) {
  using Kind = Statement::Kind;
  bool has_effects = false;
  for_each_statement(loop, [&](const Statement& s) {
    has_effects = has_effects || s.kind == Kind::store || s.kind == Kind::copy ||
                  s.kind == Kind::call || !s.carries.empty() || !s.exchanged.empty();
  });
  return loop.kind == Kind::repeat && has_checks(loop) && !has_effects;
}

bool has_places_to_check(const Statement& statement) {
  std::vector<Value> computed;
  for_each_statement(statement, [&](const Statement& s) {
    if (s.kind != Statement::Kind::repeat && s.value >= 0) computed.push_back(s.value);
  });
  bool found = false;
  for_each_statement(statement, [&](const Statement& s) {
    for (const Place::Term& term : s.place.terms)
      found |= std::find(computed.begin(), computed.end(), term.index) != computed.end();
  });
  return found;
}

std::optional<Value> known_number(const Block& block, const Statement& s) {
  using Kind = Statement::Kind;
  if (s.kind == Kind::store) return {};
  for (auto other = block.rbegin(); other != block.rend(); ++other) {
    if (s.kind == Kind::compute && other->kind == Kind::compute &&
        *other->primitive == *s.primitive && other->operands == s.operands &&
        other->params == s.params)
      return other->value;
    if (s.kind != Kind::load || other->place.memory != s.place.memory) continue;
    if (other->place == s.place)
      return other->kind == Kind::store ? other->operands[0] : other->value;
    if (other->kind == Kind::store) return {};
  }
  return {};
}

Value counter_of(LoopProgram& program, std::int64_t steps) {
  const Value counter = define(program, DType::int64);
  program.know(counter, {0, steps - 1});
  return counter;
}

Statement counting(LoopProgram& program, std::int64_t steps, Source source) {
  Statement loop;
  loop.kind = Statement::Kind::repeat;
  loop.source = source;
  loop.steps = steps;
  loop.value = counter_of(program, steps);
  loop.blocks.emplace_back();
  return loop;
}

bool is_number(const std::vector<Block>& blocks, Value counter) {
  bool is_used = false;
  const auto use = [&](Value value) { is_used = is_used || value == counter; };
  for (const Block& block : blocks)
    for_each_statement(block, [&](const Statement& s) {
      std::for_each(s.operands.begin(), s.operands.end(), use);
      for (const Statement::Carry& carry : s.carries) {
        use(carry.first), use(carry.next);
        std::for_each(carry.nexts.begin(), carry.nexts.end(), use);
      }
    });
  return is_used;
}

Value integer(LoopProgram& program, std::int64_t value) {
  const Literal literal{DType::int64, false, value, 0, 0};
  for (const auto& [known, same] : program.literals)
    if (same == literal) return known;
  const Value number = define(program, DType::int64);
  program.literals.emplace_back(number, literal);
  program.know(number, {value, value});
  return number;
}

Value number(LoopProgram& program, const loops::Index& index, Block& block) {
  const auto compute = [&](const Primitive& primitive, Value a, Value b) {
    Statement s;
    s.primitive = &primitive;
    s.operands = {a, b};
    s.value = define(program, DType::int64);
    const std::optional<Range> of_a = program.range(a), of_b = program.range(b);
    if (of_a && of_b && primitive == add_p)
      program.know(s.value, {of_a->low + of_b->low, of_a->high + of_b->high});
    else if (of_a && of_b)  // one of them is a literal
      program.know(s.value, {std::min(of_a->low * of_b->low, of_a->high * of_b->high),
                             std::max(of_a->low * of_b->low, of_a->high * of_b->high)});
    block.push_back(std::move(s));
    return block.back().value;
  };
  Value sum = -1;
  for (const Place::Term& term : index.terms) {
    const Value part =
        term.stride == 1 ? term.index : compute(mul_p, term.index, integer(program, term.stride));
    sum = sum < 0 ? part : compute(add_p, sum, part);
  }
  if (sum < 0) return integer(program, index.offset);
  return index.offset == 0 ? sum : compute(add_p, sum, integer(program, index.offset));
}

void count_by(LoopProgram& program, Statement& s, Value counter, const loops::Index& index,
              Block& before) {
  for_each_place(s, [&](Place& place, bool) {
    const std::int64_t stride = stride_of(place, counter);
    if (stride == 0) return;
    std::erase_if(place.terms, [&](const Place::Term& term) { return term.index == counter; });
    loops::add_index(place, index, stride);
  });
  for (Value& operand : s.operands)
    if (operand == counter) operand = number(program, index, before);
}

Value take_in(LoopProgram& program, const Statement& combine, Values terms, Block& block) {
  Statement s;
  s.source = combine.source;
  s.primitive = combine.primitive;
  s.params = combine.params;
  if (*combine.primitive == dot_general_p) {
    s.primitive = &fma_p;
    s.params = {};
    std::rotate(terms.begin(), terms.begin() + 1, terms.end());
  }
  s.operands = std::move(terms);
  s.value = define(program, program.dtypes[std::size_t(combine.value)]);
  block.push_back(std::move(s));
  return block.back().value;
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
