// See cpp_text.h.
// SPDX-License-Identifier: Apache-2.0
#include "cpp_text.h"

#include <plait/primitives/primitives.h>

#include <algorithm>
#include <unordered_map>

#include "codegen/calls.h"
#include "codegen/scalar_text.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

constexpr int parts = 8;  // of a combination: see NOTE: [reduction order]

// --- Statements ----------------------------------------------------------------------------------

class TextWriter {
 public:
  TextWriter(const LoopProgram& program, std::string_view function_name)
      : program_(program), checks_(checks_of(program)), calls_(program) {
    for (const auto& [value, literal] : program.literals) literals_[value] = literal;
    line("extern \"C\" long " + std::string(function_name) +
         "(void* const* memory, long* index, Call* call, void* calls) {");
    indent_ += "  ";
    for (std::size_t i = 0; i < program.memories.size(); ++i) declare(i);
    write(program.body);
    line("return 0;");
    indent_.clear();
    line("}");
  }
  std::string take() { return std::move(text_); }

 private:
  void line(const std::string& text) { text_ += indent_ + text + "\n"; }
  template <class Body>
  void in_braces(const std::string& before, const Body& body, const std::string& comment = "") {
    line(before + " {" + (comment.empty() ? "" : "  // " + comment));
    indent_ += "  ";
    body();
    indent_.resize(indent_.size() - 2);
    line("}");
  }
  static std::string number(std::int64_t value) { return integer_text(value); }

  DType dtype(Value value) const { return program_.dtypes[std::size_t(value)]; }
  std::string name(Value value) const {
    const auto found = literals_.find(value);
    return found == literals_.end() ? "v" + number(value) : literal_text(found->second);
  }
  // An index, where its type is known.
  std::string index_name(Value value) const {
    const auto found = literals_.find(value);
    return found == literals_.end() ? "v" + number(value) : number(found->second.integer);
  }
  std::string type(Value value) const { return type_text(dtype(value)); }
  void define(Value value, const std::string& expression) {
    line("const " + type(value) + " " + name(value) + " = " + expression + ";");
  }
  void declare(Value value, const std::string& expression) {
    line(type(value) + " " + name(value) + " = " + expression + ";");
  }
  void assign(const std::string& target, const std::string& expression) {
    line(target + " = " + expression + ";");
  }

  void declare(std::size_t memory) {
    const Memory& m = program_.memories[memory];
    static constexpr const char* spaces[] = {"operand ", "result ", "the frame", "counts"};
    const bool is_operand = m.space == Memory::Space::operand;
    line((is_operand ? "const auto m" : "auto m") + number(std::int64_t(memory)) +
         " = static_cast<" + (is_operand ? "const " : "") + type_text(m.dtype) + "*>(memory[" +
         number(std::int64_t(memory)) + "]);  // " + spaces[int(m.space)] +
         (m.has_index() ? number(m.index) : "") + ": " + number(m.size) +
         (m.size == 1 ? " element" : " elements"));
  }

  static void add_term(std::string& sum, std::int64_t factor, const std::string& index) {
    if (factor == 0) return;
    const std::uint64_t size = factor < 0 ? 0 - std::uint64_t(factor) : std::uint64_t(factor);
    const std::string term = index.empty() ? std::to_string(size)
                             : size == 1   ? index
                                           : index + " * " + std::to_string(size);
    if (sum.empty())
      sum = (factor < 0 ? "-" : "") + term;
    else
      sum += (factor < 0 ? " - " : " + ") + term;
  }
  // further: more indices and their strides.
  using Further = std::vector<std::pair<std::string, std::int64_t>>;
  std::string offset(const Place& place, const Further& further = {}) const {
    std::string sum;
    for (const Place::Term& term : place.terms) add_term(sum, term.stride, index_name(term.index));
    for (const auto& [index, stride] : further) add_term(sum, stride, index);
    add_term(sum, place.offset, "");
    return sum.empty() ? "0" : sum;
  }
  std::string element(const Place& place, const Further& further = {}) const {
    return "m" + number(place.memory) + "[" + offset(place, further) + "]";
  }

  void write(const Block& block) {
    for (const Statement& s : block) write(s);
  }

  void write(const Statement& s) {
    switch (s.kind) {
      case Kind::compute: {
        std::vector<DType> dtypes;
        std::vector<std::string> names;
        for (Value operand : s.operands) {
          dtypes.push_back(dtype(operand));
          names.push_back(name(operand));
        }
        return define(s.value, scalar_text(*s.primitive, s.params, dtypes, names));
      }
      case Kind::load:
        return define(s.value, element(s.place));
      case Kind::store:
        return assign(element(s.place), name(s.operands[0]));
      case Kind::copy:
        return write_copy(s);
      case Kind::check:
        return write_check(s);
      case Kind::repeat:
        return write_repeat(s);
      case Kind::combine:
        return s.is_in_order ? combine_in_order(s) : combine_in_parts(s);
      case Kind::loop:
        return write_while(s);
      case Kind::branch:
        return write_branch(s);
      case Kind::call:
        return write_call(s);
    }
  }

  void write_copy(const Statement& s) {
    const std::string outer = indent_;
    Further to, from;
    for (std::size_t axis = 0; axis < s.shape.size(); ++axis) {
      if (s.shape[axis] == 1) continue;
      const std::string i = "i" + number(std::int64_t(axis));
      line(counting(i, s.shape[axis]));
      indent_ += "  ";
      to.emplace_back(i, s.strides[axis]);
      from.emplace_back(i, s.source_strides[axis]);
    }
    assign(element(s.place, to), element(s.source_place, from));
    indent_ = outer;
  }

  void write_check(const Statement& s) {
    const std::string index = name(s.operands[0]);
    const auto order = std::find(checks_.begin(), checks_.end(), &s) - checks_.begin();
    line("if (" + index + " < " + number(s.low) + " || " + index + " > " + number(s.high) +
         ") return *index = " + index + ", " + number(order + 1) + ";");
  }

  void write_call(const Statement& s) {
    std::string places;
    for (const Place& place : s.places)
      places += (places.empty() ? "(void*)(m" : ", (void*)(m") + number(place.memory) + " + " +
                offset(place) + ")";
    line("if (void* const places[] = {" + places + "}; call(calls, " + number(calls_.number_of(s)) +
         ", places)) return -1;");
  }

  // --- Loops and branches ------------------------------------------------------------------------

  static std::string counting(const std::string& i, std::int64_t count) {
    return "for (long " + i + " = 0; " + i + " < " + number(count) + "; ++" + i + ")";
  }

  void write_repeat(const Statement& s) {
    begin(s);
    in_braces(
        counting(name(s.value), s.steps),
        [&] {
          write(s.blocks[0]);
          end_step(s);
        },
        s.is_parallel ? "in any order" : "");
    end(s);
  }
  void write_while(const Statement& s) {
    begin(s);
    in_braces("while (true)", [&] {
      write(s.blocks[0]);
      line("if (!" + name(s.operands[0]) + ") break;");
      write(s.blocks[1]);
      end_step(s);
    });
    end(s);
  }

  std::string home(const Statement& s, int memory) const {
    return "home" + number(homes_.at(&s)) + "_m" + number(memory);
  }
  void begin(const Statement& s) {
    for (const Statement::Carry& carry : s.carries) declare(carry.value, name(carry.first));
    if (!s.exchanged.empty()) homes_.emplace(&s, std::int64_t(homes_.size()));
    for (const auto& [a, b] : s.exchanged)
      line("const auto " + home(s, a) + " = m" + number(a) + ";");
  }
  void end_step(const Statement& s) {
    std::vector<std::pair<Value, Value>> moves;
    for (const Statement::Carry& carry : s.carries)
      if (carry.next != carry.value) moves.emplace_back(carry.value, carry.next);
    bool in_turn = true;  // no move overwrites what a later one reads
    for (std::size_t i = 0; i < moves.size(); ++i)
      for (std::size_t later = i + 1; later < moves.size(); ++later)
        in_turn &= moves[later].second != moves[i].first;
    if (!in_turn)
      for (const auto& [to, from] : moves)
        line("const " + type(to) + " next_" + name(to) + " = " + name(from) + ";");
    for (const auto& [to, from] : moves)
      assign(name(to), in_turn ? name(from) : "next_" + name(to));
    for (const auto& [a, b] : s.exchanged)
      line("std::swap(m" + number(a) + ", m" + number(b) + ");");
  }
  void end(const Statement& s) {
    for (std::size_t i = 0; i < s.exchanged.size(); ++i) {
      const int a = s.exchanged[i][0], b = s.exchanged[i][1];
      const std::string first = "m" + number(a), second = "m" + number(b);
      in_braces("if (" + first + " != " + home(s, a) + ")", [&] {
        line("std::swap(" + first + ", " + second + ");");
        if (s.regions.empty())
          line("swap_elements(" + first + ", " + second + ", " +
               number(program_.memories[std::size_t(a)].size) + ");");
        else
          swap_region(s.regions[i], first, second, 0, "");
      });
    }
    for (const Statement::Carry& carry : s.carries) define(carry.last, name(carry.value));
  }

  void swap_region(const Statement::Region& region, const std::string& first,
                   const std::string& second, std::size_t axis, const std::string& index) {
    if (axis == region.shape.size()) {
      const std::string at = "[" + offset(region.place) + index + "]";
      return line("std::swap(" + first + at + ", " + second + at + ");");
    }
    const std::string counter = "i" + number(std::int64_t(axis));
    in_braces("for (long " + counter + " = 0; " + counter + " < " + number(region.shape[axis]) +
                  "; ++" + counter + ")",
              [&] {
                swap_region(region, first, second, axis + 1,
                            index + " + " + counter + " * " + number(region.strides[axis]));
              });
  }

  void write_branch(const Statement& s) {
    for (const Statement::Carry& carry : s.carries)
      line(type(carry.value) + " " + name(carry.value) + ";");
    for (std::size_t i = 0; i < s.blocks.size(); ++i) {
      const bool is_last = i + 1 == s.blocks.size();
      line((i == 0 ? "" : "} else ") +
           (is_last ? "{" : "if (" + name(s.operands[0]) + " == " + std::to_string(i) + ") {"));
      indent_ += "  ";
      write(s.blocks[i]);
      for (const Statement::Carry& carry : s.carries)
        assign(name(carry.value), name(carry.nexts[i]));
      indent_.resize(indent_.size() - 2);
    }
    line("}");
  }

  // --- Combinations ------------------------------------------------------------------------------

  // A number with the terms of a step taken in, or two numbers combined.
  std::string taken_in(const Statement& s, const std::string& into) const {
    if (*s.primitive == dot_general_p)
      return "std::fma(" + name(s.operands[1]) + ", " + name(s.operands[2]) + ", " + into + ")";
    return both(s, into, name(s.operands[1]));
  }
  std::string both(const Statement& s, const std::string& a, const std::string& b) const {
    const DType of = dtype(s.value);
    return scalar_text(*s.primitive == dot_general_p ? add_p : *s.primitive, {}, {of, of}, {a, b});
  }
  void combine_in_order(const Statement& s) {
    declare(s.value, name(s.operands[0]));
    in_braces(counting(name(s.counter), s.steps), [&] {
      write(s.blocks[0]);
      assign(name(s.value), taken_in(s, name(s.value)));
    });
  }
  void combine_in_parts(const Statement& s) {
    const std::string all = "parts_of_" + name(s.value), i = name(s.counter),
                      part = all + "[" + i + " % " + number(parts) + "]";
    line(type(s.value) + " " + all + "[" + number(parts) + "];");
    line("std::fill_n(" + all + ", " + number(parts) + ", " + name(s.operands[0]) + ");");
    in_braces(counting(i, s.steps), [&] {
      write(s.blocks[0]);
      assign(part, taken_in(s, part));
    });
    line("for (int width = " + number(parts / 2) + "; width > 0; width /= 2)");
    line("  for (int i = 0; i < width; ++i)");
    line("    " + all + "[i] = " + both(s, all + "[i]", all + "[i + width]") + ";");
    define(s.value, all + "[0]");
  }

  const LoopProgram& program_;
  const std::vector<const Statement*> checks_;
  const Calls calls_;
  std::unordered_map<Value, Literal> literals_;
  std::unordered_map<const Statement*, std::int64_t> homes_;  // by loop that exchanges memories
  std::string text_, indent_;
};

void collect_checks(const Block& block, std::vector<const Statement*>& checks) {
  for (const Statement& s : block) {
    if (s.kind == Kind::check) checks.push_back(&s);
    for (const Block& inner : s.blocks) collect_checks(inner, checks);
  }
}

}  // namespace

std::vector<const Statement*> checks_of(const LoopProgram& program) {
  std::vector<const Statement*> checks;
  collect_checks(program.body, checks);
  return checks;
}

std::string cpp_text(const LoopProgram& program, std::string_view function_name) {
  return TextWriter(program, function_name).take();
}

std::string_view cpp_text_beginning() {
  return R"(#include "backends/cuda/device/plait/functions.h"

#include <algorithm>

// How a text calls a kernel: nothing, or that it failed.
using Call = bool(void* calls, long number, void* const* places);

template <class T>
void swap_elements(T* a, T* b, long count) {
  std::swap_ranges(a, a + count, b);
}

)";
}

}  // namespace plait::codegen
