// See planted_errors.h.
// SPDX-License-Identifier: Apache-2.0
#include "planted_errors.h"

#include <plait/primitives/primitives.h>

#include <algorithm>
#include <limits>

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

// What a mistake makes of a statement.
enum class Edit { none, changed, dropped };

template <class F>
bool edit_first(Block& block, const F& edit) {
  for (auto s = block.begin(); s != block.end(); ++s) {
    const Edit done = edit(*s);
    if (done == Edit::dropped) block.erase(s);
    if (done != Edit::none) return true;
    if (s->kind == Kind::loop) continue;
    for (Block& inner : s->blocks)
      if (edit_first(inner, edit)) return true;
  }
  return false;
}
template <class F>
bool edit_first(LoopProgram& program, const F& edit) {
  return edit_first(program.body, edit);
}
// The first statement of a kind for which change(statement) holds.
template <class F>
bool change_first(LoopProgram& program, Kind kind, const F& change) {
  return edit_first(program, [&](Statement& s) {
    return s.kind == kind && change(s) ? Edit::changed : Edit::none;
  });
}

// All statements of a kind.
template <class F>
bool change_all(Block& block, Kind kind, const F& change) {
  bool changed = false;
  for (Statement& s : block) {
    if (s.kind == kind) change(s), changed = true;
    for (Block& inner : s.blocks) changed |= change_all(inner, kind, change);
  }
  return changed;
}

Value add_value(LoopProgram& program, DType dtype) {
  program.dtypes.push_back(dtype);
  return Value(program.dtypes.size()) - 1;
}
Value add_literal(LoopProgram& program, const Literal& literal) {
  const Value value = add_value(program, literal.dtype);
  program.literals.emplace_back(value, literal);
  return value;
}
const Literal* literal_of(const LoopProgram& program, Value value) {
  for (const auto& [known, literal] : program.literals)
    if (known == value) return &literal;
  return nullptr;
}
bool is_real(const LoopProgram& program, Value value) {
  return is_floating(program.dtypes[std::size_t(value)]);
}

// --- Places --------------------------------------------------------------------------------------

bool load_further(LoopProgram& program) {
  return change_first(program, Kind::load, [](Statement& s) {
    return !s.place.terms.empty() && (++s.place.offset, true);
  });
}
bool store_further(LoopProgram& program) {
  return change_first(program, Kind::store, [](Statement& s) { return ++s.place.offset, true; });
}
bool stride_longer(LoopProgram& program) {
  return change_first(program, Kind::load, [](Statement& s) {
    if (s.place.terms.empty()) return false;
    return ++s.place.terms.back().stride, true;
  });
}
bool strides_exchanged(LoopProgram& program) {
  return change_first(program, Kind::copy, [](Statement& s) {
    if (s.shape.size() != 2 || s.shape[0] != s.shape[1] || s.strides[0] == s.strides[1])
      return false;
    return std::swap(s.strides[0], s.strides[1]), true;
  });
}
bool copy_shorter(LoopProgram& program) {
  return change_first(program, Kind::copy, [](Statement& s) {
    if (s.shape.empty() || s.shape[0] < 2) return false;
    return --s.shape[0], true;
  });
}
bool store_dropped(LoopProgram& program) {
  return edit_first(program, [](const Statement& s) {
    return s.kind == Kind::store ? Edit::dropped : Edit::none;
  });
}

// --- Numbers -------------------------------------------------------------------------------------

bool operands_swapped(LoopProgram& program) {
  return change_first(program, Kind::compute, [](Statement& s) {
    const bool has_order = *s.primitive == sub_p || *s.primitive == div_p;
    if (!has_order || s.operands[0] == s.operands[1]) return false;
    return std::swap(s.operands[0], s.operands[1]), true;
  });
}
bool other_function(LoopProgram& program) {
  return change_first(program, Kind::compute, [](Statement& s) {
    const Primitive* const other = *s.primitive == exp_p   ? &sin_p
                                   : *s.primitive == sin_p ? &cos_p
                                   : *s.primitive == max_p ? &min_p
                                                           : nullptr;
    if (other) s.primitive = other;
    return other != nullptr;
  });
}
bool other_literal(LoopProgram& program) {
  return change_first(program, Kind::compute, [&](Statement& s) {
    for (Value& operand : s.operands)
      if (const Literal* literal = literal_of(program, operand);
          literal && is_floating(literal->dtype)) {
        Literal more = *literal;
        more.real += 1;
        return operand = add_literal(program, more), true;
      }
    return false;
  });
}
bool equals_taken_in(LoopProgram& program) {
  return change_first(program, Kind::compute, [](Statement& s) {
    if (*s.primitive != cmp_p || s.params.text("direction") != "lt") return false;
    s.params = s.params.with("direction", std::string("le"));
    return true;
  });
}

// --- Combinations --------------------------------------------------------------------------------

bool last_term_missing(LoopProgram& program) {
  return change_first(program, Kind::combine, [](Statement& s) { return --s.steps, true; });
}
bool other_order(LoopProgram& program) {
  return change_first(program, Kind::combine, [&](Statement& s) {
    const bool rounds =
        *s.primitive == add_p || *s.primitive == mul_p || *s.primitive == dot_general_p;
    if (!rounds || s.steps < 9 || !is_real(program, s.value)) return false;
    return s.is_in_order = !s.is_in_order, true;
  });
}
// A product is rounded before it is added.
bool product_rounded(LoopProgram& program) {
  return change_first(program, Kind::combine, [&](Statement& s) {
    if (*s.primitive != dot_general_p) return false;
    Statement product;
    product.value = add_value(program, program.dtypes[std::size_t(s.value)]);
    product.primitive = &mul_p;
    product.operands = {s.operands[1], s.operands[2]};
    s.operands = {s.operands[0], product.value};
    s.primitive = &add_p;
    s.blocks[0].push_back(std::move(product));
    return true;
  });
}
bool other_start(LoopProgram& program) {
  return change_first(program, Kind::combine, [&](Statement& s) {
    const DType dtype = program.dtypes[std::size_t(s.value)];
    if (*s.primitive != add_p || !is_real(program, s.value)) return false;
    return s.operands[0] = add_literal(program, Literal{dtype, false, 0, 1, 0}), true;
  });
}

// --- Loops and branches --------------------------------------------------------------------------

bool last_step_missing(LoopProgram& program) {
  return change_first(program, Kind::repeat, [](Statement& s) { return --s.steps, true; });
}
bool carry_kept(LoopProgram& program) {
  return change_first(program, Kind::repeat, [&](Statement& s) {
    for (Statement::Carry& carry : s.carries)
      if (carry.next != carry.value && is_real(program, carry.value))
        return carry.next = carry.value, true;
    return false;
  });
}
bool carries_in_turn(LoopProgram& program) {
  return change_first(program, Kind::repeat, [&](Statement& s) {
    for (std::size_t i = 0; i < s.carries.size(); ++i)
      for (std::size_t later = i + 1; later < s.carries.size(); ++later)
        if (s.carries[later].next == s.carries[i].value)
          return s.carries[later].next = s.carries[i].next, true;
    return false;
  });
}
bool exchange_dropped(LoopProgram& program) {
  return change_first(program, Kind::repeat, [](Statement& s) {
    if (s.exchanged.empty()) return false;
    return s.exchanged.pop_back(), true;
  });
}
bool other_branch(LoopProgram& program) {
  return change_first(program, Kind::branch, [](Statement& s) {
    std::swap(s.blocks[0], s.blocks[1]);
    for (Statement::Carry& carry : s.carries) std::swap(carry.nexts[0], carry.nexts[1]);
    return true;
  });
}
bool one_step_of_while(LoopProgram& program) {
  return change_first(program, Kind::loop, [&](Statement& s) {
    s.kind = Kind::repeat;
    s.steps = 1;
    s.value = add_value(program, DType::int64);
    s.blocks[0].insert(s.blocks[0].end(), s.blocks[1].begin(), s.blocks[1].end());
    s.blocks.pop_back();
    return true;
  });
}

// --- Checks --------------------------------------------------------------------------------------

// Every check, since short loops over them are written out.
bool check_wider(LoopProgram& program) {
  return change_all(program.body, Kind::check, [](Statement& s) { ++s.high; });
}
bool check_narrower(LoopProgram& program) {
  return change_first(program, Kind::check, [](Statement& s) { return --s.high, true; });
}
bool check_dropped(LoopProgram& program) {
  return change_all(program.body, Kind::check, [](Statement& s) {
    s.low = std::numeric_limits<std::int64_t>::min();
    s.high = std::numeric_limits<std::int64_t>::max();
  });
}

}  // namespace

const std::vector<PlantedError>& planted_errors() {
  static const std::vector<PlantedError> errors = {
      {"a load one element further", load_further, {"relaxation", "alignment", "stencil"}},
      {"a store one element further", store_further, {"heat", "carry stacked"}},
      {"a stride that is one more", stride_longer, {"columns and rows", "matrix and vectors"}},
      {"the strides of a copy exchanged", strides_exchanged, {"transposed"}},
      {"a copy without its last row", copy_shorter, {"carry stacked", "keys"}},
      {"a dropped store", store_dropped, {"heat", "filter"}},
      {"operands swapped", operands_swapped, {"relaxation", "tridiagonal", "division"}},
      {"another function", other_function, {"transcendental", "softmax rows", "alignment"}},
      {"another literal", other_literal, {"heat", "outer products"}},
      {"equals taken in", equals_taken_in, {"alignment", "flags"}},
      {"a combination without its last term",
       last_term_missing,
       {"inner products", "matrix and vectors"}},
      {"a combination in another order",
       other_order,
       {"reductions", "softmax rows", "matrix and vectors"}},
      {"a product rounded before it is added", product_rounded, {"matrix and vectors"}},
      {"a combination from another start", other_start, {"reductions", "forward substitution"}},
      {"a loop without its last step", last_step_missing, {"relaxation", "running"}},
      {"a carry that keeps its value", carry_kept, {"old value", "rotated numbers", "relaxation"}},
      {"carries that change one after the other", carries_in_turn, {"swapped numbers"}},
      {"memories that do not change places", exchange_dropped, {"columns and rows", "positions"}},
      {"the other branch",
       other_branch,
       {"branches with other memory", "branch that returns its input"}},
      {"one step of a while loop", one_step_of_while, {"sparse rows", "insertion sort"}},
      {"a check that lets one more pass", check_wider, {"gathered outside", "read in a branch"}},
      {"a check that refuses the last", check_narrower, {"old value", "carry stacked"}},
      {"a dropped check", check_dropped, {"gathered outside", "scattered outside"}}};
  return errors;
}

const std::vector<PlantedText>& planted_texts() {
  static const std::vector<PlantedText> texts = {
      {"parts that are blocks", " % 8]", " / 8 % 8]", {"softmax rows"}},
      {"parts joined with others", "[i + width]", "[2 * width - 1 - i]", {"softmax rows"}},
      {"exchanged memories that stay away",
       "swap_elements(",
       "// swap_elements(",
       {"columns and rows"}},
      {"a failed check that goes on", "return *index = ", "*index = ", {"gathered outside"}},
      {"a check of both bounds at once", " || ", " && ", {"gathered outside", "read in a branch"}}};
  return texts;
}

}  // namespace plait::codegen
