// Decoding, and one switch over what runs. See interpreter.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/interpreter.h"

#include <plait/base/interrupt.h>
#include <plait/trace/array.h>

#include <cstring>

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

constexpr std::int64_t slot_bytes = 8, line = 64;
constexpr std::int64_t steps_between_interrupts = 1024;

void copy_number(void* to, const void* from, std::int64_t bytes) {
  switch (bytes) {
    case 1:
      std::memcpy(to, from, 1);
      return;
    case 2:
      std::memcpy(to, from, 2);
      return;
    case 4:
      std::memcpy(to, from, 4);
      return;
    case 8:
      std::memcpy(to, from, 8);
      return;
    default:
      std::memcpy(to, from, 16);
  }
}

[[noreturn, gnu::cold]] void throw_outside_memory(std::int64_t at, std::int64_t size) {
  throw InternalError("a loop program reads or writes element " + std::to_string(at) + " of " +
                      std::to_string(size));
}

}  // namespace

Interpreter::Interpreter(const LoopProgram& program) : program_(program) {
  std::int64_t bytes = 0;
  for (DType dtype : program_.dtypes) {
    slots_.push_back(int(bytes));
    bytes += std::max(slot_bytes, size_of(dtype));
  }
  literals_.assign(std::size_t(bytes), 0);
  for (const auto& [value, literal] : program_.literals) {
    const Buffer number = Array::literal(literal).buffer();
    copy_number(literals_.data() + slot(value), number.data(), size_of(literal.dtype));
  }
  for (const Memory& memory : program_.memories) {
    bytes = (bytes + line - 1) / line * line;
    memory_at_.push_back(bytes);
    if (memory.space == Memory::Space::frame) bytes += memory.size * size_of(memory.dtype);
  }
  frame_bytes_ = bytes;
  codes_ = decode(program_.body);
}

Interpreter::Move Interpreter::move(Value from, Value to) const {
  return {slot(from), slot(to), int(size_of(program_.dtypes[std::size_t(to)]))};
}

Interpreter::Access Interpreter::access(const Place& place) const {
  const Memory& memory = program_.memories[std::size_t(place.memory)];
  Access access{place.memory, place.offset, memory.size, size_of(memory.dtype), {}};
  for (const Place::Term& term : place.terms)
    access.terms.push_back({slot(term.index), term.stride});
  return access;
}

std::vector<Interpreter::Code> Interpreter::decode(const Block& block) {
  std::vector<Code> codes;
  for (const Statement& statement : block) codes.push_back(decode(statement));
  return codes;
}

Interpreter::Code Interpreter::decode(const Statement& s) {
  Code code{};
  code.kind = s.kind;
  code.statement = &s;
  code.steps = s.steps;
  if (s.value >= 0) code.result = slot(s.value);
  if (s.kind == Kind::compute) {
    std::vector<DType> dtypes;
    for (Value operand : s.operands) dtypes.push_back(program_.dtypes[std::size_t(operand)]);
    code.chunk = rule<Pointwise>(*s.primitive)(dtypes, s.params);
  }
  for (Value operand : s.operands) code.operands[std::size_t(code.num_operands++)] = slot(operand);
  if (s.place.memory >= 0) code.place = access(s.place);
  if (s.source_place.memory >= 0) code.source_place = access(s.source_place);
  for (const Block& block : s.blocks) code.blocks.push_back(decode(block));
  if (s.kind == Kind::branch) {
    for (std::size_t i = 0; i < s.blocks.size(); ++i) {
      code.results.emplace_back();
      for (const Statement::Carry& carry : s.carries)
        code.results.back().push_back(move(carry.nexts[i], carry.value));
    }
    return code;
  }
  for (const Statement::Carry& carry : s.carries) {
    code.first.push_back(move(carry.first, carry.value));
    code.next.push_back(move(carry.next, carry.value));
    code.last.push_back(move(carry.value, carry.last));
  }
  for (std::size_t i = 0; i < code.next.size(); ++i)
    for (std::size_t later = i + 1; later < code.next.size(); ++later)
      if (code.next[later].from == code.next[i].to) code.moves_in_turn = false;
  return code;
}

std::int64_t Interpreter::element(const Access& access, const Run& run) {
  std::int64_t at = access.offset;
  for (const Access::Term& term : access.terms) {
    std::int64_t index;
    std::memcpy(&index, run.frame + term.index, sizeof index);
    at += index * term.stride;
  }
  if (std::uint64_t(at) >= std::uint64_t(access.size)) throw_outside_memory(at, access.size);
  return at;
}

void Interpreter::apply(const std::vector<Move>& moves, bool in_turn, char* frame) {
  if (in_turn) {
    for (const Move& move : moves) copy_number(frame + move.to, frame + move.from, move.bytes);
    return;
  }
  std::array<std::array<char, 16>, 16> few;
  std::vector<std::array<char, 16>> many;
  std::array<char, 16>* held = few.data();
  if (moves.size() > few.size()) {
    many.resize(moves.size());
    held = many.data();
  }
  for (std::size_t i = 0; i < moves.size(); ++i)
    copy_number(held[i].data(), frame + moves[i].from, moves[i].bytes);
  for (std::size_t i = 0; i < moves.size(); ++i)
    copy_number(frame + moves[i].to, held[i].data(), moves[i].bytes);
}

void Interpreter::execute(const std::vector<Code>& codes, const Run& run) const {
  for (const Code& code : codes) {
    if (code.kind == Kind::compute) {
      const void* operands[4];
      for (int i = 0; i < code.num_operands; ++i)
        operands[i] = run.frame + code.operands[std::size_t(i)];
      code.chunk.loop(operands, run.frame + code.result, 1, code.chunk.argument);
    } else if (code.kind == Kind::load) {
      const std::int64_t at = element(code.place, run);
      copy_number(run.frame + code.result, run.memories[code.place.memory] + at * code.place.bytes,
                  code.place.bytes);
    } else if (code.kind == Kind::store) {
      const std::int64_t at = element(code.place, run);
      copy_number(run.memories[code.place.memory] + at * code.place.bytes,
                  run.frame + code.operands[0], code.place.bytes);
    } else {
      step(code, run);
    }
  }
}

void Interpreter::step(const Code& code, const Run& run) const {
  const auto int64_at = [&](int slot) {
    std::int64_t value;
    std::memcpy(&value, run.frame + slot, sizeof value);
    return value;
  };
  switch (code.kind) {
    case Kind::copy: {
      const Statement& s = *code.statement;
      const auto view = [&](const Access& access, const Sizes64& strides) {
        std::int64_t last = element(access, run);
        const std::int64_t first = last;
        for (std::size_t axis = 0; axis < s.shape.size(); ++axis)
          last += (s.shape[axis] - 1) * strides[axis];
        if (last < 0 || last >= access.size) throw_outside_memory(last, access.size);
        return View{run.memories[access.memory] + first * access.bytes,
                    program_.memories[std::size_t(access.memory)].dtype, s.shape, strides};
      };
      copy_elements(view(code.source_place, s.source_strides), view(code.place, s.strides));
      return;
    }
    case Kind::check: {
      const Statement& s = *code.statement;
      const std::int64_t index = int64_at(code.operands[0]);
      if (s.low <= index && index <= s.high) return;
      raise(s, index);
    }
    case Kind::repeat:
      apply(code.first, false, run.frame);
      for (std::int64_t i = 0; i < code.steps; ++i) {
        if (i % steps_between_interrupts == 0) check_interrupts();
        std::memcpy(run.frame + code.result, &i, sizeof i);
        execute(code.blocks[0], run);
        apply(code.next, code.moves_in_turn, run.frame);
      }
      return apply(code.last, false, run.frame);
    case Kind::loop:
      apply(code.first, false, run.frame);
      for (std::int64_t i = 0;; ++i) {
        if (i % steps_between_interrupts == 0) check_interrupts();
        execute(code.blocks[0], run);
        if (!run.frame[code.operands[0]]) break;
        execute(code.blocks[1], run);
        apply(code.next, code.moves_in_turn, run.frame);
      }
      return apply(code.last, false, run.frame);
    case Kind::branch: {
      const auto chosen = std::size_t(int64_at(code.operands[0]));
      execute(code.blocks[chosen], run);
      return apply(code.results[chosen], true, run.frame);
    }
    default:
      throw InternalError("a statement of a loop program without code");
  }
}

void Interpreter::run(std::span<const View> operands, std::span<const View> results,
                      void* frame) const {
  char* const base = static_cast<char*>(frame);
  if (!literals_.empty()) std::memcpy(base, literals_.data(), literals_.size());
  std::vector<char*> memories;
  for (std::size_t i = 0; i < program_.memories.size(); ++i) {
    const Memory& memory = program_.memories[i];
    const auto index = std::size_t(memory.index);
    memories.push_back(memory.space == Memory::Space::operand  ? operands[index].as<char>()
                       : memory.space == Memory::Space::result ? results[index].as<char>()
                                                               : base + memory_at_[i]);
  }
  execute(codes_, {base, memories.data()});
}

}  // namespace plait::codegen
