// Decoding, and one switch over what runs. See interpreter.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/interpreter.h"

#include <plait/base/pool.h>
#include <plait/primitives/primitives.h>
#include <plait/trace/array.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "codegen/lanes.h"
#include "codegen/own.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

constexpr std::int64_t slot_bytes = 8, most_bytes = 16, line = 64;
constexpr std::int64_t parts = 8;  // of a combination
constexpr std::int64_t steps_between_interrupts = 1024;

// Leaves the loops of a run that is to stop, on any of its threads.
struct Stopped {};
void ask(InterruptWatch& interrupts) {
  if (interrupts.should_stop()) throw Stopped{};
}

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

void fill(char* to, const char* from, std::int64_t bytes, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) copy_number(to + i * bytes, from, bytes);
}

template <class T>
void multiply_and_add(void* into, const void* a, const void* b, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    static_cast<T*>(into)[i] = std::fma(static_cast<const T*>(a)[i], static_cast<const T*>(b)[i],
                                        static_cast<T*>(into)[i]);
}

[[noreturn, gnu::cold]] void throw_outside_memory(std::int64_t at, std::int64_t size) {
  throw InternalError("a loop program reads or writes element " + std::to_string(at) + " of " +
                      std::to_string(size));
}

// How far the elements of an array lie before and behind its first one.
struct Extent {
  __int128 before = 0, behind = 0;
};
Extent extent_of(const Sizes64& shape, const Sizes64& strides) {
  Extent extent;
  if (num_elements(shape) == 0) return extent;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const __int128 reach = __int128(shape[axis] - 1) * strides[axis];
    (reach < 0 ? extent.before : extent.behind) += reach;
  }
  return extent;
}
void require_inside(std::int64_t first, const Extent& extent, std::int64_t size) {
  for (const __int128 end : {first + extent.before, first + extent.behind})
    if (end < 0 || end >= size) throw_outside_memory(std::int64_t(end), size);
}

}  // namespace

Interpreter::Interpreter(const LoopProgram& program) : program_(program), calls_(program_) {
  has_lanes_ = find_lanes(program_);
  of_steps_ = memories_of_steps(program_);
  std::int64_t bytes = 0;
  for (const bool lanes_wanted : {false, true}) {
    slots_.resize(program_.dtypes.size());
    for (std::size_t value = 0; value < slots_.size(); ++value)
      if (has_lanes_[value] == lanes_wanted) {
        slots_[value] = int(bytes);
        bytes += (lanes_wanted ? lanes : 1) * std::max(slot_bytes, size_of(program_.dtypes[value]));
      }
    if (!lanes_wanted) literals_.assign(std::size_t(bytes), 0);
  }
  broadcast_at_ = int(bytes);
  bytes += 4 * lanes * most_bytes;
  frame_bytes_ = bytes;
  codes_ = decode(program_.body);  // adds accumulators to the frame
  bytes = value_bytes_ = frame_bytes_;
  for (const auto& [value, literal] : program_.literals) {
    const Buffer number = Array::literal(literal).buffer();
    copy_number(literals_.data() + slot(value), number.data(), size_of(literal.dtype));
  }
  for (const Memory& memory : program_.memories) {
    bytes = (bytes + line - 1) / line * line;
    memory_at_.push_back(bytes);
    if (!memory.has_index()) bytes += memory.size * size_of(memory.dtype);
  }
  scratch_at_ = (bytes + line - 1) / line * line;
  frame_bytes_ = scratch_at_ + calls_.scratch_bytes();
}

Interpreter::Move Interpreter::move(Value from, Value to) const {
  return {slot(from), slot(to), int(size_of(program_.dtypes[std::size_t(to)])),
          has_lanes_[std::size_t(from)], has_lanes_[std::size_t(to)]};
}

Interpreter::Access Interpreter::access(const Place& place) const {
  const Memory& memory = program_.memories[std::size_t(place.memory)];
  Access access{place.memory, place.offset, memory.size, size_of(memory.dtype), {}, {}};
  for (const Place::Term& term : place.terms) {
    if (term.index == counter_ && has_lanes_[std::size_t(term.index)]) {
      access.counter_stride += term.stride;
      access.terms.push_back({slot(term.index), term.stride});  // of the first lane
    } else {
      (has_lanes_[std::size_t(term.index)] ? access.lane_terms : access.terms)
          .push_back({slot(term.index), term.stride});
    }
  }
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
  if (s.kind == Kind::combine) {
    const DType dtype = program_.dtypes[std::size_t(s.value)];
    const DType dtypes[] = {dtype, dtype};
    code.is_product = *s.primitive == dot_general_p;
    code.chunk = rule<Pointwise>(code.is_product ? add_p : *s.primitive)(dtypes, {});
    code.counter = slot(s.counter);
    code.accumulators = int(frame_bytes_);
    frame_bytes_ += parts * lanes * size_of(dtype);
  }
  if (s.value >= 0) code.has_lanes = has_lanes_[std::size_t(s.value)];
  for (Value operand : s.operands) {
    const auto i = std::size_t(code.num_operands++);
    code.operands[i] = slot(operand);
    code.is_lanes[i] = has_lanes_[std::size_t(operand)];
    code.bytes[i] = int(size_of(program_.dtypes[std::size_t(operand)]));
  }
  const Value outer = counter_;
  if (s.is_parallel) counter_ = s.value;
  if (s.kind == Kind::combine && counter_ < 0) counter_ = s.counter;
  if (s.place.memory >= 0) code.place = access(s.place);
  if (s.source_place.memory >= 0) code.source_place = access(s.source_place);
  if (s.kind == Kind::call) code.call = calls_.number_of(s);
  for (const Place& place : s.places) code.places.push_back(access(place));
  for (const Statement::Region& region : s.regions) code.regions.push_back(access(region.place));
  for (const Block& block : s.blocks) code.blocks.push_back(decode(block));
  counter_ = outer;
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

void Interpreter::exchange(const Code& code, const Run& run) {
  for (const auto& [a, b] : code.statement->exchanged) std::swap(run.memories[a], run.memories[b]);
}

void Interpreter::exchange_back(const Code& code, const Run& run, std::int64_t steps) const {
  if (steps % 2 == 0) return;
  exchange(code, run);
  const Statement& s = *code.statement;
  for (std::size_t i = 0; i < s.exchanged.size(); ++i) {
    const int a = s.exchanged[i][0], b = s.exchanged[i][1];
    const Memory& memory = program_.memories[std::size_t(a)];
    const std::int64_t bytes = size_of(memory.dtype);
    if (s.regions.empty()) {
      std::swap_ranges(run.memories[a], run.memories[a] + memory.size * bytes, run.memories[b]);
      continue;
    }
    const Statement::Region& region = s.regions[i];
    const std::int64_t first = element(code.regions[i], run);
    std::int64_t last = first;
    for (std::size_t axis = 0; axis < region.shape.size(); ++axis)
      last += (region.shape[axis] - 1) * region.strides[axis];
    if (last < 0 || last >= memory.size) throw_outside_memory(last, memory.size);
    const auto swap = [&](const auto& self, std::size_t axis, std::int64_t at) -> void {
      if (axis == region.shape.size()) {
        std::swap_ranges(run.memories[a] + at * bytes, run.memories[a] + (at + 1) * bytes,
                         run.memories[b] + at * bytes);
        return;
      }
      for (std::int64_t i = 0; i < region.shape[axis]; ++i)
        self(self, axis + 1, at + i * region.strides[axis]);
    };
    swap(swap, 0, first);
  }
}

void Interpreter::apply_in_lanes(const std::vector<Move>& moves, const Run& run,
                                 std::int64_t count) const {
  const auto stride = std::size_t(lanes * most_bytes);
  std::vector<char> held(moves.size() * stride);
  for (std::size_t i = 0; i < moves.size(); ++i)
    gather(moves[i], run.frame, held.data() + i * stride, count);
  for (std::size_t i = 0; i < moves.size(); ++i)
    std::memcpy(run.frame + moves[i].to, held.data() + i * stride,
                std::size_t((moves[i].to_lanes ? count : 1) * moves[i].bytes));
}

void Interpreter::gather(const Move& move, const char* frame, char* to, std::int64_t count) {
  if (move.from_lanes || !move.to_lanes)
    std::memcpy(to, frame + move.from, std::size_t((move.to_lanes ? count : 1) * move.bytes));
  else
    fill(to, frame + move.from, move.bytes, count);
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

// f(lane, element) for the elements that the lanes go to.
template <class F>
void Interpreter::for_each_lane(const Access& access, const Run& run, std::int64_t count,
                                const F& f) {
  std::int64_t at = access.offset;
  for (const Access::Term& term : access.terms) {
    std::int64_t index;
    std::memcpy(&index, run.frame + term.index, sizeof index);
    at += index * term.stride;
  }
  if (access.lane_terms.empty()) {
    const std::int64_t last = at + (count - 1) * access.counter_stride;
    for (const std::int64_t end : {at, last})
      if (std::uint64_t(end) >= std::uint64_t(access.size)) throw_outside_memory(end, access.size);
    for (std::int64_t lane = 0; lane < count; ++lane) f(lane, at + lane * access.counter_stride);
    return;
  }
  for (std::int64_t lane = 0; lane < count; ++lane) {
    std::int64_t here = at + lane * access.counter_stride;
    for (const Access::Term& term : access.lane_terms) {
      std::int64_t index;
      std::memcpy(&index, run.frame + term.index + lane * std::int64_t(sizeof index), sizeof index);
      here += index * term.stride;
    }
    if (std::uint64_t(here) >= std::uint64_t(access.size)) throw_outside_memory(here, access.size);
    f(lane, here);
  }
}

const char* Interpreter::lanes_of(const Code& code, int operand, const Run& run,
                                  std::int64_t count) const {
  const auto i = std::size_t(operand);
  const char* const at = run.frame + code.operands[i];
  if (code.is_lanes[i]) return at;
  char* const filled = run.frame + broadcast_at_ + operand * lanes * most_bytes;
  fill(filled, at, code.bytes[i], count);
  return filled;
}

void Interpreter::execute_lanes(const std::vector<Code>& codes, const Run& run,
                                std::int64_t count) const {
  for (const Code& code : codes) {
    if (code.kind == Kind::compute) {
      const void* operands[4];
      for (int i = 0; i < code.num_operands; ++i)
        operands[i] = code.has_lanes ? lanes_of(code, i, run, count)
                                     : run.frame + code.operands[std::size_t(i)];
      code.chunk.loop(operands, run.frame + code.result, code.has_lanes ? count : 1,
                      code.chunk.argument);
    } else if (code.kind == Kind::load) {
      const std::int64_t bytes = code.place.bytes;
      const char* const memory = run.memories[code.place.memory];
      for_each_lane(
          code.place, run, code.has_lanes ? count : 1, [&](std::int64_t lane, std::int64_t at) {
            copy_number(run.frame + code.result + lane * bytes, memory + at * bytes, bytes);
          });
    } else if (code.kind == Kind::store) {
      const std::int64_t bytes = code.place.bytes;
      char* const memory = run.memories[code.place.memory];
      const char* const value = lanes_of(code, 0, run, count);
      for_each_lane(code.place, run, count, [&](std::int64_t lane, std::int64_t at) {
        copy_number(memory + at * bytes, value + lane * bytes, bytes);
      });
    } else if (code.kind == Kind::combine) {
      combine_lanes(code, run, count);
    } else {
      step_in_lanes(code, run, count);
    }
  }
}

std::size_t Interpreter::alternative(const Code& code, const Run& run) {
  std::int64_t chosen;
  std::memcpy(&chosen, run.frame + code.operands[0], sizeof chosen);
  if (std::uint64_t(chosen) >= code.blocks.size())
    throw InternalError("a branch of a loop program has no alternative " + std::to_string(chosen));
  return std::size_t(chosen);
}

// What goes the same way in all lanes, and while loops that do not.
void Interpreter::step_in_lanes(const Code& code, const Run& run, std::int64_t count) const {
  switch (code.kind) {
    case Kind::repeat:
      apply_in_lanes(code.first, run, count);
      for (std::int64_t i = 0; i < code.steps; ++i) {
        if (i % steps_between_interrupts == 0) ask(*run.interrupts);
        std::memcpy(run.frame + code.result, &i, sizeof i);
        execute_lanes(code.blocks[0], run, count);
        apply_in_lanes(code.next, run, count);
      }
      return apply_in_lanes(code.last, run, count);
    case Kind::loop:
      if (code.is_lanes[0]) return loop_in_lanes(code, run, count);
      apply_in_lanes(code.first, run, count);
      for (std::int64_t steps = 0;; ++steps) {
        if (steps % steps_between_interrupts == 0) ask(*run.interrupts);
        execute_lanes(code.blocks[0], run, count);
        if (!run.frame[code.operands[0]]) break;
        execute_lanes(code.blocks[1], run, count);
        apply_in_lanes(code.next, run, count);
      }
      return apply_in_lanes(code.last, run, count);
    case Kind::branch: {
      const std::size_t chosen = alternative(code, run);
      execute_lanes(code.blocks[chosen], run, count);
      return apply_in_lanes(code.results[chosen], run, count);
    }
    default:
      step(code, run);
  }
}

// A while loop in each lane, until none goes on. Lanes that have ended keep their numbers.
void Interpreter::loop_in_lanes(const Code& code, const Run& run, std::int64_t count) const {
  for (const Move& first : code.first) gather(first, run.frame, run.frame + first.to, count);
  std::array<bool, lanes> goes_on;
  goes_on.fill(true);
  std::vector<char> next(code.next.size() * std::size_t(lanes * most_bytes));
  for (std::int64_t step = 0;; ++step) {
    if (step % steps_between_interrupts == 0) ask(*run.interrupts);
    execute_lanes(code.blocks[0], run, count);
    const char* const holds = lanes_of(code, 0, run, count);
    bool any = false;
    for (std::int64_t lane = 0; lane < count; ++lane)
      any |= goes_on[std::size_t(lane)] = goes_on[std::size_t(lane)] && holds[lane];
    if (!any) break;
    execute_lanes(code.blocks[1], run, count);
    for (std::size_t i = 0; i < code.next.size(); ++i)
      gather(code.next[i], run.frame, next.data() + i * std::size_t(lanes * most_bytes), count);
    for (std::size_t i = 0; i < code.next.size(); ++i) {
      const std::int64_t bytes = code.next[i].bytes;
      const char* const from = next.data() + i * std::size_t(lanes * most_bytes);
      for (std::int64_t lane = 0; lane < count; ++lane)
        if (goes_on[std::size_t(lane)])
          copy_number(run.frame + code.next[i].to + lane * bytes, from + lane * bytes, bytes);
    }
  }
  for (const Move& last : code.last)
    std::memcpy(run.frame + last.to, run.frame + last.from, std::size_t(count * last.bytes));
}

void Interpreter::run_parallel(const Code& code, const Run& run, std::int64_t begin,
                               std::int64_t end) const {
  for (std::int64_t first = begin; first < end; first += lanes) {
    if (first % (steps_between_interrupts * lanes) == 0) ask(*run.interrupts);
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const std::int64_t step = first + lane;
      std::memcpy(run.frame + code.result + lane * std::int64_t(sizeof step), &step, sizeof step);
    }
    execute_lanes(code.blocks[0], run, std::min(lanes, end - first));
  }
}

// All steps, or some of a loop that carries nothing.
void Interpreter::run_steps(const Code& code, const Run& run, std::int64_t begin,
                            std::int64_t end) const {
  if (code.has_lanes) return run_parallel(code, run, begin, end);
  apply(code.first, false, run.frame);
  for (std::int64_t i = begin; i < end; ++i) {
    if (i % steps_between_interrupts == 0) ask(*run.interrupts);
    std::memcpy(run.frame + code.result, &i, sizeof i);
    execute(code.blocks[0], run);
    apply(code.next, code.moves_in_turn, run.frame);
    exchange(code, run);
  }
  exchange_back(code, run, end - begin);
  apply(code.last, false, run.frame);
}

// Each range of steps has values of its own.
void Interpreter::run_shared(const Code& code, const Run& run) const {
  const std::int64_t unit = code.has_lanes ? lanes : 1;
  const std::int64_t units = (code.steps + unit - 1) / unit;
  const std::int64_t grain = std::max<std::int64_t>(1, code.statement->grain / unit);
  parallel_for(units, run.shared->begin(units, grain), [&](std::int64_t begin, std::int64_t end) {
    std::vector<char> values(run.frame, run.frame + value_bytes_);
    std::vector<char*> memories(run.memories, run.memories + program_.memories.size());
    Run own = run;
    own.frame = values.data();
    own.memories = memories.data();
    std::vector<std::vector<char>> of_steps;
    for (const int memory : of_steps_) {
      const Memory& each = program_.memories[std::size_t(memory)];
      of_steps.emplace_back(std::size_t(each.size * size_of(each.dtype)));
      memories[std::size_t(memory)] = of_steps.back().data();
    }
    run_steps(code, own, begin * unit, std::min(end * unit, code.steps));
  });
  run.shared->end();
}

// Combines numbers with others, one by one.
void Interpreter::take_in(const Code& code, char* into, const char* const* terms,
                          std::int64_t count) {
  if (code.is_product) {
    (code.bytes[0] == 8 ? multiply_and_add<double> : multiply_and_add<float>)(into, terms[0],
                                                                              terms[1], count);
    return;
  }
  const void* operands[] = {into, terms[0]};
  code.chunk.loop(operands, into, count, code.chunk.argument);
}

// The steps are lanes.
void Interpreter::combine(const Code& code, const Run& run) const {
  const std::int64_t bytes = code.bytes[0];
  char* const sums = run.frame + code.accumulators;
  fill(sums, run.frame + code.operands[0], bytes, parts);
  for (std::int64_t first = 0; first < code.steps; first += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const std::int64_t step = first + lane;
      std::memcpy(run.frame + code.counter + lane * std::int64_t(sizeof step), &step, sizeof step);
    }
    const std::int64_t count = std::min(lanes, code.steps - first);
    execute_lanes(code.blocks[0], run, count);
    const char* terms[2] = {};
    for (int i = 1; i < code.num_operands; ++i) terms[i - 1] = lanes_of(code, i, run, count);
    const std::int64_t together = code.statement->is_in_order ? 1 : parts;
    for (std::int64_t lane = 0; lane < count; lane += together) {
      take_in(code, sums, terms, std::min(together, count - lane));
      for (const char*& term : terms)
        if (term) term += together * bytes;
    }
  }
  if (!code.statement->is_in_order)
    for (std::int64_t width = parts / 2; width > 0; width /= 2) {
      const void* operands[] = {sums, sums + width * bytes};
      code.chunk.loop(operands, sums, width, code.chunk.argument);
    }
  copy_number(run.frame + code.result, sums, bytes);
}

// One combination for each lane.
void Interpreter::combine_lanes(const Code& code, const Run& run, std::int64_t count) const {
  const std::int64_t bytes = code.bytes[0], apart = lanes * bytes;
  const std::int64_t num_parts = code.statement->is_in_order ? 1 : parts;
  char* const sums = run.frame + code.accumulators;
  const char* const identity = lanes_of(code, 0, run, count);
  for (std::int64_t part = 0; part < num_parts; ++part)
    std::memcpy(sums + part * apart, identity, std::size_t(count * bytes));
  for (std::int64_t step = 0; step < code.steps; ++step) {
    std::memcpy(run.frame + code.counter, &step, sizeof step);
    execute_lanes(code.blocks[0], run, count);
    const char* terms[2] = {};
    for (int i = 1; i < code.num_operands; ++i) terms[i - 1] = lanes_of(code, i, run, count);
    take_in(code, sums + step % num_parts * apart, terms, count);
  }
  for (std::int64_t width = num_parts / 2; width > 0; width /= 2)
    for (std::int64_t part = 0; part < width; ++part) {
      const void* operands[] = {sums + part * apart, sums + (part + width) * apart};
      code.chunk.loop(operands, sums + part * apart, count, code.chunk.argument);
    }
  std::memcpy(run.frame + code.result, sums, std::size_t(count * bytes));
}

void Interpreter::call(const Code& code, const Run& run) {
  std::vector<void*> addresses;
  for (std::size_t i = 0; i < code.places.size(); ++i) {
    const Access& place = code.places[i];
    const std::int64_t first = element(place, run);
    const View& view = run.calls->view(code.call, i);
    require_inside(first, extent_of(view.shape, view.strides), place.size);
    addresses.push_back(run.memories[place.memory] + first * place.bytes);
  }
  run.calls->run(code.call, addresses.data());
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
        const std::int64_t first = element(access, run);
        require_inside(first, extent_of(s.shape, strides), access.size);
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
    case Kind::combine:
      return combine(code, run);
    case Kind::call:
      return call(code, run);
    case Kind::repeat:
      if (code.statement->grain > 0) return run_shared(code, run);
      return run_steps(code, run, 0, code.steps);
    case Kind::loop: {
      apply(code.first, false, run.frame);
      std::int64_t steps = 0;
      for (;; ++steps) {
        if (steps % steps_between_interrupts == 0) ask(*run.interrupts);
        execute(code.blocks[0], run);
        if (!run.frame[code.operands[0]]) break;
        execute(code.blocks[1], run);
        apply(code.next, code.moves_in_turn, run.frame);
        exchange(code, run);
      }
      exchange_back(code, run, steps);
      return apply(code.last, false, run.frame);
    }
    case Kind::branch: {
      const std::size_t chosen = alternative(code, run);
      execute(code.blocks[chosen], run);
      return apply(code.results[chosen], true, run.frame);
    }
    default:
      throw InternalError("a statement of a loop program without code");
  }
}

std::vector<void*> Interpreter::memories(std::span<const View> operands,
                                         std::span<const View> results, void* frame) const {
  std::vector<void*> memories;
  for (std::size_t i = 0; i < program_.memories.size(); ++i) {
    const Memory& memory = program_.memories[i];
    const auto index = std::size_t(memory.index);
    memories.push_back(memory.space == Memory::Space::operand ? operands[index].data
                       : memory.space == Memory::Space::result
                           ? results[index].data
                           : static_cast<char*>(frame) + memory_at_[i]);
  }
  return memories;
}

void Interpreter::run(std::span<const View> operands, std::span<const View> results, void* frame,
                      const Stream& stream) const {
  char* const base = static_cast<char*>(frame);
  if (!literals_.empty()) std::memcpy(base, literals_.data(), literals_.size());
  std::vector<char*> memories;
  for (void* memory : this->memories(operands, results, frame))
    memories.push_back(static_cast<char*>(memory));
  RunningCalls calls(calls_, base + scratch_at_, stream);
  InterruptWatch interrupts;
  CloseLoops shared;
  try {
    execute(codes_, {base, memories.data(), &calls, &interrupts, &shared});
  } catch (const Stopped&) {
    interrupts.rethrow();
  }
}

}  // namespace plait::codegen
