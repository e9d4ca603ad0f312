// Decoding, and one switch over what runs. See interpreter.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/interpreter.h"

#include <plait/base/pool.h>
#include <plait/primitives/primitives.h>
#include <plait/trace/array.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "codegen/lanes.h"
#include "codegen/own.h"
#include "codegen/walk.h"

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

// f(a number of so many bytes).
template <class F>
void with_number(std::int64_t bytes, const F& f) {
  switch (bytes) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    case 8:
      return f(std::uint64_t{});
    default:
      f(std::array<std::uint64_t, 2>{});
  }
}

void fill(char* to, const char* from, std::int64_t bytes, std::int64_t count) {
  with_number(bytes, [&](auto number) {
    std::memcpy(&number, from, sizeof number);
    std::fill_n(reinterpret_cast<decltype(number)*>(to), count, number);
  });
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

Interpreter::~Interpreter() = default;

Interpreter::Interpreter(const LoopProgram& program) : program_(program), calls_(program_) {
  has_lanes_ = find_lanes(program_);
  stays_in_memory_.assign(program_.dtypes.size(), false);
  lanes_ = choose_lanes();
  of_steps_ = memories_of_steps(program_);
  std::int64_t bytes = 0;
  slots_.resize(program_.dtypes.size());
  for (std::size_t value = 0; value < slots_.size(); ++value)
    if (!has_lanes_[value]) {
      slots_[value] = int(bytes);
      bytes += std::max(slot_bytes, size_of(program_.dtypes[value]));
    }
  literals_.assign(std::size_t(bytes), 0);
  bytes = place_lanes(program_.body, (bytes + line - 1) / line * line);
  broadcast_at_ = int(bytes);
  bytes += 4 * lanes_ * most_bytes;
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

// Behind `base` in the frame, where loops that run lanes one after the other use the same places.
// Gives the end of what they use.
std::int64_t Interpreter::place_lanes(const Block& block, std::int64_t base) {
  std::int64_t end = base;
  for (const Statement& s : block) {
    if (s.is_parallel || s.kind == Kind::combine) {
      end = std::max(end, place_values(s, base));
      continue;
    }
    for (const Block& inner : s.blocks) end = std::max(end, place_lanes(inner, base));
  }
  return end;
}

// A place of its own for each value of a loop, or, where its body is one block, until its last use.
std::int64_t Interpreter::place_values(const Statement& loop, std::int64_t end) {
  const auto place_at = [&](Value value, std::int64_t at) { slots_[std::size_t(value)] = int(at); };
  const auto size = [&](Value value) {
    const std::int64_t bytes =
        std::max<std::int64_t>(lanes_ * size_of(program_.dtypes[std::size_t(value)]), slot_bytes);
    return (bytes + line - 1) / line * line;
  };
  const auto place_behind = [&](Value value) {
    if (!has_lanes_[std::size_t(value)]) return;
    place_at(value, end);
    end += size(value);
  };
  const Block& block = loop.blocks[0];
  if (!std::all_of(block.begin(), block.end(),
                   [](const Statement& s) { return s.blocks.empty(); })) {
    for_each_statement(loop, [&](const Statement& s) { for_each_definition(s, place_behind); });
    return end;
  }
  for_each_definition(loop, place_behind);
  std::unordered_map<Value, std::size_t> last_use;
  for (std::size_t i = 0; i < block.size(); ++i)
    for_each_use(block[i], [&](Value value) { last_use[value] = i; });
  for_each_use(loop, [&](Value value) { last_use[value] = block.size(); });
  std::unordered_map<std::int64_t, std::vector<std::int64_t>> free;  // by size
  for (std::size_t i = 0; i < block.size(); ++i) {
    const Value value = block[i].value;
    if (value >= 0 && has_lanes_[std::size_t(value)]) {
      std::vector<std::int64_t>& places = free[size(value)];
      if (places.empty()) {
        place_behind(value);
      } else {
        place_at(value, places.back());
        places.pop_back();
      }
      last_use.emplace(value, i);
    }
    std::set<Value> ended;
    const auto end_here = [&](Value each) {
      if (has_lanes_[std::size_t(each)] && each != loop.value && each != loop.counter &&
          last_use[each] == i)
        ended.insert(each);
    };
    for_each_use(block[i], end_here);
    if (value >= 0) end_here(value);
    for (const Value each : ended) free[size(each)].push_back(slot(each));
  }
  return end;
}

// So many that what a statement takes by itself is little, if there are as many steps and their
// values stay near.
std::int64_t Interpreter::choose_lanes() const {
  constexpr std::int64_t fewest = 64, most = 512, near = 1 << 19;
  std::int64_t steps = 0, bytes = 0;
  for_each_statement(program_.body, [&](const Statement& s) {
    if (!s.is_parallel && s.kind != Kind::combine) return;
    steps = std::max(steps, s.steps);
    std::int64_t mine = 0;
    for_each_statement(s, [&](const Statement& each) {
      if (each.value >= 0) mine += size_of(program_.dtypes[std::size_t(each.value)]);
    });
    bytes = std::max(bytes, mine);
  });
  std::int64_t lanes = most;
  while (lanes > fewest && (lanes * bytes > near || lanes >= 2 * steps)) lanes /= 2;
  return lanes;
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
  for (std::size_t i = 0; i < block.size(); ++i) {
    codes.push_back(decode(block[i]));
    if (i + 1 < block.size() && is_stored_at_once(block, i)) {
      codes.back().more->place = access(block[++i].place);
      codes.back().is_stored = true;
    }
  }
  return codes;
}

// Whether lanes are computed for the store behind them alone, side by side.
bool Interpreter::is_stored_at_once(const Block& block, std::size_t i) const {
  const Statement &s = block[i], &store = block[i + 1];
  if (s.kind != Kind::compute || store.kind != Kind::store || store.operands[0] != s.value ||
      !has_lanes_[std::size_t(s.value)] || !lanes_loop_ || !lanes_loop_->is_parallel ||
      &block != &lanes_loop_->blocks[0] || !access(store.place).is_run())
    return false;  // in inner loops, carries may use it too
  return std::none_of(
      block.begin() + std::ptrdiff_t(i) + 2, block.end(), [&](const Statement& other) {
        bool is_used = false;
        for_each_statement(other, [&](const Statement& each) {
          for_each_use(each, [&](Value value) { is_used = is_used || value == s.value; });
        });
        return is_used;
      });
}

// Which loads of elements side by side need not be copied: what uses them, in the same block, comes
// before anything is written.
void Interpreter::find_what_stays(const Block& block) {
  for (std::size_t i = 0; i < block.size(); ++i) {
    const Statement& load = block[i];
    if (load.kind != Kind::load || !has_lanes_[std::size_t(load.value)] ||
        !access(load.place).is_run())
      continue;
    bool is_written = false, stays = true;
    for (std::size_t next = i + 1; next < block.size() && stays; ++next) {
      const Statement& s = block[next];
      const bool is_plain = s.kind == Kind::compute || s.kind == Kind::load;
      bool is_used = false, is_index = false;
      for_each_statement(s, [&](const Statement& each) {
        for_each_use(each, [&](Value value) { is_used = is_used || value == load.value; });
      });
      for (const Place::Term& term : s.place.terms) is_index = is_index || term.index == load.value;
      stays = !is_used || (!is_written && !is_index && (is_plain || s.kind == Kind::store));
      is_written = is_written || !is_plain;
    }
    stays_in_memory_[std::size_t(load.value)] = stays;
  }
}

int Interpreter::splat_of(Value value) {
  const auto [found, is_new] = splats_.emplace(value, int(frame_bytes_));
  if (is_new) {
    const std::int64_t bytes = size_of(program_.dtypes[std::size_t(value)]);
    frame_bytes_ += (lanes_ * bytes + line - 1) / line * line;
    lanes_code_->more->splats.push_back({slot(value), found->second, bytes});
  }
  return found->second;
}

Interpreter::Code Interpreter::decode(const Statement& s) {
  Code code;
  code.more = std::make_unique<More>();
  code.kind = s.kind;
  code.more->statement = &s;
  code.more->steps = s.steps;
  if (s.value >= 0) code.result = slot(s.value);
  if (s.kind == Kind::compute) {
    std::vector<DType> dtypes;
    for (Value operand : s.operands) dtypes.push_back(program_.dtypes[std::size_t(operand)]);
    code.chunk = rule<Pointwise>(*s.primitive)(dtypes, s.params);
  }
  if (s.kind == Kind::combine) {
    const DType dtype = program_.dtypes[std::size_t(s.value)];
    const DType dtypes[] = {dtype, dtype};
    code.more->is_product = *s.primitive == dot_general_p;
    code.chunk = rule<Pointwise>(code.more->is_product ? add_p : *s.primitive)(dtypes, {});
    code.more->counter = slot(s.counter);
    code.more->accumulators = int(frame_bytes_);
    frame_bytes_ += (parts * lanes_ * size_of(dtype) + line - 1) / line * line;
  }
  if (s.value >= 0) code.has_lanes = has_lanes_[std::size_t(s.value)];
  for (Value operand : s.operands) {
    const auto i = std::size_t(code.num_operands++);
    code.operands[i] = slot(operand);
    code.is_lanes[i] = has_lanes_[std::size_t(operand)];
    code.bytes[i] = int(size_of(program_.dtypes[std::size_t(operand)]));
    code.is_in_memory[i] = stays_in_memory_[std::size_t(operand)];
    const bool is_plain = s.kind == Kind::compute || s.kind == Kind::store;
    if (is_plain && (code.has_lanes || s.kind == Kind::store) && !code.is_lanes[i] && lanes_loop_ &&
        !inside_.count(operand)) {
      code.operands[i] = splat_of(operand);
      code.is_lanes[i] = true;
    }
  }
  code.stays_in_memory = s.kind == Kind::load && stays_in_memory_[std::size_t(s.value)];
  const Value outer = counter_;
  if (s.is_parallel) counter_ = s.value;
  if (s.kind == Kind::combine && counter_ < 0) counter_ = s.counter;
  const bool begins_lanes = outer != counter_;
  if (begins_lanes) {
    code.more->counts = is_number(s.blocks, counter_);
    lanes_loop_ = &s, lanes_code_ = &code;
    for (const Block& block : s.blocks) {
      for_each_statement(block, [&](const Statement& each) {
        for_each_definition(each, [&](Value value) { inside_.insert(value); });
      });
      find_what_stays(block);
    }
  }
  if (s.place.memory >= 0) code.more->place = access(s.place);
  if (s.source_place.memory >= 0) code.more->source_place = access(s.source_place);
  if (s.kind == Kind::call) code.more->call = calls_.number_of(s);
  for (const Place& place : s.places) code.more->places.push_back(access(place));
  for (const Statement::Region& region : s.regions)
    code.more->regions.push_back(access(region.place));
  for (const Block& block : s.blocks) code.more->blocks.push_back(decode(block));
  counter_ = outer;
  if (begins_lanes) {
    for (std::size_t i = 0; i < s.operands.size(); ++i)  // of a combination: what its block loads
      code.is_in_memory[i] = stays_in_memory_[std::size_t(s.operands[i])];
    lanes_loop_ = nullptr, lanes_code_ = nullptr;
    splats_.clear(), inside_.clear();
  }
  if (s.kind == Kind::branch) {
    for (std::size_t i = 0; i < s.blocks.size(); ++i) {
      code.more->results.emplace_back();
      for (const Statement::Carry& carry : s.carries)
        code.more->results.back().push_back(move(carry.nexts[i], carry.value));
    }
    return code;
  }
  for (const Statement::Carry& carry : s.carries) {
    code.more->first.push_back(move(carry.first, carry.value));
    code.more->next.push_back(move(carry.next, carry.value));
    code.more->last.push_back(move(carry.value, carry.last));
  }
  for (std::size_t i = 0; i < code.more->next.size(); ++i)
    for (std::size_t later = i + 1; later < code.more->next.size(); ++later)
      if (code.more->next[later].from == code.more->next[i].to) code.more->moves_in_turn = false;
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
  for (const auto& [a, b] : code.more->statement->exchanged)
    std::swap(run.memories[a], run.memories[b]);
}

void Interpreter::exchange_back(const Code& code, const Run& run, std::int64_t steps) const {
  if (steps % 2 == 0) return;
  exchange(code, run);
  const Statement& s = *code.more->statement;
  for (std::size_t i = 0; i < s.exchanged.size(); ++i) {
    const int a = s.exchanged[i][0], b = s.exchanged[i][1];
    const Memory& memory = program_.memories[std::size_t(a)];
    const std::int64_t bytes = size_of(memory.dtype);
    if (s.regions.empty()) {
      std::swap_ranges(run.memories[a], run.memories[a] + memory.size * bytes, run.memories[b]);
      continue;
    }
    const Statement::Region& region = s.regions[i];
    const std::int64_t first = element(code.more->regions[i], run);
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
  const auto stride = std::size_t(lanes_ * most_bytes);
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
      const std::int64_t at = element(code.more->place, run);
      copy_number(run.frame + code.result,
                  run.memories[code.more->place.memory] + at * code.more->place.bytes,
                  code.more->place.bytes);
    } else if (code.kind == Kind::store) {
      const std::int64_t at = element(code.more->place, run);
      copy_number(run.memories[code.more->place.memory] + at * code.more->place.bytes,
                  run.frame + code.operands[0], code.more->place.bytes);
    } else {
      step(code, run);
    }
  }
}

// The element of the first lane, where the lanes go to elements side by side.
std::int64_t Interpreter::first_of_run(const Access& access, const Run& run, std::int64_t count) {
  const std::int64_t at = element(access, run);
  if (at + count > access.size) throw_outside_memory(at + count - 1, access.size);
  return at;
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
    if (run.live && !run.live[lane]) continue;
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
  if (code.is_in_memory[i]) {
    const char* in_memory;
    std::memcpy(&in_memory, at, sizeof in_memory);
    return in_memory;
  }
  if (code.is_lanes[i]) return at;
  char* const filled = run.frame + broadcast_at_ + operand * lanes_ * most_bytes;
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
      char* const result =
          code.is_stored ? run.memories[code.more->place.memory] +
                               first_of_run(code.more->place, run, count) * code.more->place.bytes
                         : run.frame + code.result;
      code.chunk.loop(operands, result, code.has_lanes ? count : 1, code.chunk.argument);
    } else if (code.kind == Kind::load) {
      const char* const memory = run.memories[code.more->place.memory];
      char* const result = run.frame + code.result;
      with_number(code.more->place.bytes, [&](auto number) {
        const std::int64_t bytes = sizeof number;
        if (code.stays_in_memory) {
          const char* const first = memory + first_of_run(code.more->place, run, count) * bytes;
          std::memcpy(result, &first, sizeof first);
        } else if (code.has_lanes && code.more->place.is_run())
          std::memcpy(result, memory + first_of_run(code.more->place, run, count) * bytes,
                      std::size_t(count * bytes));
        else
          for_each_lane(code.more->place, run, code.has_lanes ? count : 1,
                        [&](std::int64_t lane, std::int64_t at) {
                          std::memcpy(result + lane * bytes, memory + at * bytes, sizeof number);
                        });
      });
    } else if (code.kind == Kind::store) {
      char* const memory = run.memories[code.more->place.memory];
      const char* const value = lanes_of(code, 0, run, count);
      with_number(code.more->place.bytes, [&](auto number) {
        const std::int64_t bytes = sizeof number;
        if (code.more->place.is_run())
          std::memcpy(memory + first_of_run(code.more->place, run, count) * bytes, value,
                      std::size_t(count * bytes));
        else
          for_each_lane(code.more->place, run, count, [&](std::int64_t lane, std::int64_t at) {
            std::memcpy(memory + at * bytes, value + lane * bytes, sizeof number);
          });
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
  if (std::uint64_t(chosen) >= code.more->blocks.size())
    throw InternalError("a branch of a loop program has no alternative " + std::to_string(chosen));
  return std::size_t(chosen);
}

void Interpreter::check_lanes(const Code& code, const Run& run, std::int64_t count) const {
  const Statement& s = *code.more->statement;
  const char* const indices = lanes_of(code, 0, run, count);
  for (std::int64_t lane = 0; lane < count; ++lane) {
    std::int64_t index;
    std::memcpy(&index, indices + lane * std::int64_t(sizeof index), sizeof index);
    if ((!run.live || run.live[lane]) && (index < s.low || s.high < index)) raise(s, index);
  }
}

// What goes the same way in all lanes, and while loops that do not.
void Interpreter::step_in_lanes(const Code& code, const Run& run, std::int64_t count) const {
  switch (code.kind) {
    case Kind::repeat:
      apply_in_lanes(code.more->first, run, count);
      for (std::int64_t i = 0; i < code.more->steps; ++i) {
        if (i % steps_between_interrupts == 0) ask(*run.interrupts);
        std::memcpy(run.frame + code.result, &i, sizeof i);
        execute_lanes(code.more->blocks[0], run, count);
        apply_in_lanes(code.more->next, run, count);
      }
      return apply_in_lanes(code.more->last, run, count);
    case Kind::loop:
      if (code.is_lanes[0]) return loop_in_lanes(code, run, count);
      apply_in_lanes(code.more->first, run, count);
      for (std::int64_t steps = 0;; ++steps) {
        if (steps % steps_between_interrupts == 0) ask(*run.interrupts);
        execute_lanes(code.more->blocks[0], run, count);
        if (!run.frame[code.operands[0]]) break;
        execute_lanes(code.more->blocks[1], run, count);
        apply_in_lanes(code.more->next, run, count);
      }
      return apply_in_lanes(code.more->last, run, count);
    case Kind::branch: {
      const std::size_t chosen = alternative(code, run);
      execute_lanes(code.more->blocks[chosen], run, count);
      return apply_in_lanes(code.more->results[chosen], run, count);
    }
    case Kind::check:
      return code.is_lanes[0] ? check_lanes(code, run, count) : step(code, run);
    default:
      step(code, run);
  }
}

// A while loop in each lane, until none goes on. Lanes that have ended keep their numbers.
void Interpreter::loop_in_lanes(const Code& code, const Run& given, std::int64_t count) const {
  std::vector<char> goes_on(std::size_t(count), true);
  if (given.live) std::copy_n(given.live, count, goes_on.begin());
  Run run = given;
  run.live = goes_on.data();
  for (const Move& first : code.more->first) gather(first, run.frame, run.frame + first.to, count);
  std::vector<char> next(code.more->next.size() * std::size_t(lanes_ * most_bytes));
  for (std::int64_t step = 0;; ++step) {
    if (step % steps_between_interrupts == 0) ask(*run.interrupts);
    execute_lanes(code.more->blocks[0], run, count);
    const char* const holds = lanes_of(code, 0, run, count);
    bool any = false;
    for (std::int64_t lane = 0; lane < count; ++lane)
      any |= goes_on[std::size_t(lane)] = goes_on[std::size_t(lane)] && holds[lane];
    if (!any) break;
    execute_lanes(code.more->blocks[1], run, count);
    for (std::size_t i = 0; i < code.more->next.size(); ++i)
      gather(code.more->next[i], run.frame, next.data() + i * std::size_t(lanes_ * most_bytes),
             count);
    for (std::size_t i = 0; i < code.more->next.size(); ++i) {
      const std::int64_t bytes = code.more->next[i].bytes;
      const char* const from = next.data() + i * std::size_t(lanes_ * most_bytes);
      for (std::int64_t lane = 0; lane < count; ++lane)
        if (goes_on[std::size_t(lane)])
          copy_number(run.frame + code.more->next[i].to + lane * bytes, from + lane * bytes, bytes);
    }
  }
  for (const Move& last : code.more->last)
    std::memcpy(run.frame + last.to, run.frame + last.from, std::size_t(count * last.bytes));
}

void Interpreter::begin_lanes(const Code& code, const Run& run) const {
  for (const More::Splat& splat : code.more->splats)
    fill(run.frame + splat.to, run.frame + splat.from, splat.bytes, lanes_);
}

// The first lane is enough for places.
void Interpreter::count_lanes(const Code& code, char* counter, std::int64_t first) const {
  auto* const steps = reinterpret_cast<std::int64_t*>(counter);
  std::iota(steps, steps + (code.more->counts ? lanes_ : 1), first);
}

void Interpreter::run_parallel(const Code& code, const Run& run, std::int64_t begin,
                               std::int64_t end) const {
  begin_lanes(code, run);
  for (std::int64_t first = begin; first < end; first += lanes_) {
    if (first % (steps_between_interrupts * lanes_) == 0) ask(*run.interrupts);
    count_lanes(code, run.frame + code.result, first);
    execute_lanes(code.more->blocks[0], run, std::min(lanes_, end - first));
  }
}

// All steps, or some of a loop that carries nothing.
void Interpreter::run_steps(const Code& code, const Run& run, std::int64_t begin,
                            std::int64_t end) const {
  if (code.has_lanes) return run_parallel(code, run, begin, end);
  apply(code.more->first, false, run.frame);
  for (std::int64_t i = begin; i < end; ++i) {
    if (i % steps_between_interrupts == 0) ask(*run.interrupts);
    std::memcpy(run.frame + code.result, &i, sizeof i);
    execute(code.more->blocks[0], run);
    apply(code.more->next, code.more->moves_in_turn, run.frame);
    exchange(code, run);
  }
  exchange_back(code, run, end - begin);
  apply(code.more->last, false, run.frame);
}

// Each range of steps has values of its own.
void Interpreter::run_shared(const Code& code, const Run& run) const {
  const std::int64_t unit = code.has_lanes ? lanes_ : 1;
  const std::int64_t units = (code.more->steps + unit - 1) / unit;
  const std::int64_t grain = std::max<std::int64_t>(1, code.more->statement->grain / unit);
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
    run_steps(code, own, begin * unit, std::min(end * unit, code.more->steps));
  });
  run.shared->end();
}

// Combines numbers with others, one by one.
void Interpreter::take_in(const Code& code, char* into, const char* const* terms,
                          std::int64_t count) {
  if (code.more->is_product) {
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
  char* const sums = run.frame + code.more->accumulators;
  fill(sums, run.frame + code.operands[0], bytes, parts);
  begin_lanes(code, run);
  for (std::int64_t first = 0; first < code.more->steps; first += lanes_) {
    count_lanes(code, run.frame + code.more->counter, first);
    const std::int64_t count = std::min(lanes_, code.more->steps - first);
    execute_lanes(code.more->blocks[0], run, count);
    const char* terms[2] = {};
    for (int i = 1; i < code.num_operands; ++i) terms[i - 1] = lanes_of(code, i, run, count);
    const std::int64_t together = code.more->statement->is_in_order ? 1 : parts;
    for (std::int64_t lane = 0; lane < count; lane += together) {
      take_in(code, sums, terms, std::min(together, count - lane));
      for (const char*& term : terms)
        if (term) term += together * bytes;
    }
  }
  if (!code.more->statement->is_in_order)
    for (std::int64_t width = parts / 2; width > 0; width /= 2) {
      const void* operands[] = {sums, sums + width * bytes};
      code.chunk.loop(operands, sums, width, code.chunk.argument);
    }
  copy_number(run.frame + code.result, sums, bytes);
}

// One combination for each lane.
void Interpreter::combine_lanes(const Code& code, const Run& run, std::int64_t count) const {
  const std::int64_t bytes = code.bytes[0], apart = lanes_ * bytes;
  const std::int64_t num_parts = code.more->statement->is_in_order ? 1 : parts;
  char* const sums = run.frame + code.more->accumulators;
  const char* const identity = lanes_of(code, 0, run, count);
  for (std::int64_t part = 0; part < num_parts; ++part)
    std::memcpy(sums + part * apart, identity, std::size_t(count * bytes));
  for (std::int64_t step = 0; step < code.more->steps; ++step) {
    std::memcpy(run.frame + code.more->counter, &step, sizeof step);
    execute_lanes(code.more->blocks[0], run, count);
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
  for (std::size_t i = 0; i < code.more->places.size(); ++i) {
    const Access& place = code.more->places[i];
    const std::int64_t first = element(place, run);
    const View& view = run.calls->view(code.more->call, i);
    require_inside(first, extent_of(view.shape, view.strides), place.size);
    addresses.push_back(run.memories[place.memory] + first * place.bytes);
  }
  run.calls->run(code.more->call, addresses.data());
}

void Interpreter::step(const Code& code, const Run& run) const {
  const auto int64_at = [&](int slot) {
    std::int64_t value;
    std::memcpy(&value, run.frame + slot, sizeof value);
    return value;
  };
  switch (code.kind) {
    case Kind::copy: {
      const Statement& s = *code.more->statement;
      const auto view = [&](const Access& access, const Sizes64& strides) {
        const std::int64_t first = element(access, run);
        require_inside(first, extent_of(s.shape, strides), access.size);
        return View{run.memories[access.memory] + first * access.bytes,
                    program_.memories[std::size_t(access.memory)].dtype, s.shape, strides};
      };
      copy_elements(view(code.more->source_place, s.source_strides),
                    view(code.more->place, s.strides));
      return;
    }
    case Kind::check: {
      const Statement& s = *code.more->statement;
      const std::int64_t index = int64_at(code.operands[0]);
      if (s.low <= index && index <= s.high) return;
      raise(s, index);
    }
    case Kind::combine:
      return combine(code, run);
    case Kind::call:
      return call(code, run);
    case Kind::repeat:
      if (code.more->statement->grain > 0) return run_shared(code, run);
      return run_steps(code, run, 0, code.more->steps);
    case Kind::loop: {
      apply(code.more->first, false, run.frame);
      std::int64_t steps = 0;
      for (;; ++steps) {
        if (steps % steps_between_interrupts == 0) ask(*run.interrupts);
        execute(code.more->blocks[0], run);
        if (!run.frame[code.operands[0]]) break;
        execute(code.more->blocks[1], run);
        apply(code.more->next, code.more->moves_in_turn, run.frame);
        exchange(code, run);
      }
      exchange_back(code, run, steps);
      return apply(code.more->last, false, run.frame);
    }
    case Kind::branch: {
      const std::size_t chosen = alternative(code, run);
      execute(code.more->blocks[chosen], run);
      return apply(code.more->results[chosen], true, run.frame);
    }
    default:
      throw InternalError("a statement of a loop program without code");
  }
}

void Interpreter::place_memories(std::span<const View> operands, std::span<const View> results,
                                 void* frame, char** memories) const {
  for (std::size_t i = 0; i < program_.memories.size(); ++i) {
    const Memory& memory = program_.memories[i];
    const auto index = std::size_t(memory.index);
    void* const at = memory.space == Memory::Space::operand ? operands[index].data
                     : memory.space == Memory::Space::result
                         ? results[index].data
                         : static_cast<char*>(frame) + memory_at_[i];
    memories[i] = static_cast<char*>(at);
  }
}

std::vector<void*> Interpreter::memories(std::span<const View> operands,
                                         std::span<const View> results, void* frame) const {
  std::vector<char*> memories(program_.memories.size());
  place_memories(operands, results, frame, memories.data());
  return {memories.begin(), memories.end()};
}

void Interpreter::run(std::span<const View> operands, std::span<const View> results, void* frame,
                      const Launch& launch) const {
  char* const base = static_cast<char*>(frame);
  if (!literals_.empty()) std::memcpy(base, literals_.data(), literals_.size());
  constexpr std::size_t few = 48;  // which need no memory besides
  std::array<char*, few> of_few;
  std::vector<char*> of_many(program_.memories.size() > few ? program_.memories.size() : 0);
  char** const memories = of_many.empty() ? of_few.data() : of_many.data();
  place_memories(operands, results, frame, memories);
  RunningCalls calls(calls_, base + scratch_at_, launch);
  InterruptWatch interrupts;
  CloseLoops shared;
  try {
    execute(codes_, {base, memories, &calls, &interrupts, &shared});
  } catch (const Stopped&) {
    interrupts.rethrow();
  }
}

}  // namespace plait::codegen
