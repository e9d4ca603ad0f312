// A loop program as one generated function: numbers are in registers, arrays lie where the program
// says. What is decided was decided before; this file only writes it down.
//
// The steps of a parallel loop, and of a combination, are lanes of vectors; a value that is the
// same in all of them stays a scalar.
//
// A check that fails leaves the function with its number and the index; the kernel then raises its
// error. Loops that may take long ask now and then whether to stop, and leave the function too.
//
// A loop that threads share is a function of its own, over a range of the steps. It is called like
// the kernel, with the memories as they stand, and finds the numbers it uses in the caller's frame.
// SPDX-License-Identifier: Apache-2.0
#include "program_kernel.h"

#include <plait/base/pool.h>
#include <plait/primitives/primitives.h>

#include <atomic>
#include <bit>
#include <set>
#include <unordered_map>

#include "backends/control/lane_counts.h"
#include "base/spinning.h"
#include "base/system_memory.h"
#include "codegen/calls.h"
#include "codegen/copies.h"
#include "codegen/cost.h"
#include "codegen/effects.h"
#include "codegen/functions_together.h"
#include "codegen/in_place.h"
#include "codegen/lanes.h"
#include "codegen/own.h"
#include "codegen/share.h"
#include "codegen/split_complex.h"
#include "codegen/walk.h"
#include "codegen/work.h"
#include "compile/loop_programs.h"
#include "jit.h"
#include "primitives.h"
#include "streams.h"
#include "watch.h"

namespace plait::llvm {
namespace {

using codegen::LoopProgram;
using codegen::Memory;
using codegen::Statement;
using Kind = Statement::Kind;
using Number = codegen::Value;
using Place = codegen::Place;

using Function = void(void* const* memory, std::int64_t begin, std::int64_t end);

// Behind the memory of the program.
enum Extra {
  failed_slot,
  ask_slot,
  watch_slot,
  call_slot,
  calls_slot,
  share_slot,
  shares_slot,
  numbers_slot,
  num_extras
};
// What a check that fails leaves: its number from 1 on, and the index.
using Failure = std::array<std::int64_t, 2>;

constexpr int parts = codegen::parts_of_combination;
// Statements that a piece of a loop runs: less than ten milliseconds. Then it asks whether to stop.
constexpr double piece_of_loop = 1 << 20;
constexpr double short_step = 64;

double work_of(const codegen::Block& block) {
  constexpr double usual_steps = 16;  // of a while
  double work = 1;
  for (const Statement& s : block) {
    double inner = 0;
    for (const codegen::Block& each : s.blocks) inner += work_of(each);
    work += s.kind == Kind::repeat || s.kind == Kind::combine ? double(s.steps) * inner
            : s.kind == Kind::loop                            ? usual_steps * inner
            : s.kind == Kind::copy                            ? double(num_elements(s.shape))
                                                              : 1 + inner;
  }
  return work;
}

// Whether generated code may ask whether to stop.
bool may_ask(const LoopProgram& program) {
  bool has_open_end = false;
  codegen::for_each_statement(program.body, [&](const Statement& s) {
    has_open_end = has_open_end || s.kind == Kind::loop;
  });
  return has_open_end || work_of(program.body) > piece_of_loop;
}

void collect_checks(const codegen::Block& block, std::vector<const Statement*>& checks) {
  for (const Statement& s : block) {
    if (s.kind == Kind::check) checks.push_back(&s);
    for (const codegen::Block& inner : s.blocks) collect_checks(inner, checks);
  }
}

// Which results, by number, are written past the caches: what is more than these hold, in whole
// lines, once each.
class Streams {
 public:
  explicit Streams(const LoopProgram& program) : program_(program) {
    std::int64_t bytes = 0;
    for (const Memory& memory : program.memories) {
      if (!memory.has_index()) continue;
      bytes += memory.size * size_of(memory.dtype);
      if (memory.space == Memory::Space::result)
        are_lines_.resize(std::max(are_lines_.size(), std::size_t(memory.index) + 1), false);
    }
    if (!outgrows_caches(bytes)) return;
    are_lines_.assign(are_lines_.size(), true);
    uses_.assign(are_lines_.size(), 0);
    visit(program.body);
    for (std::size_t i = 0; i < uses_.size(); ++i) are_lines_[i] = are_lines_[i] && uses_[i] == 1;
  }
  std::vector<bool> take() { return std::move(are_lines_); }

 private:
  void visit(const codegen::Block& block) {
    for (const Statement& s : block) {
      codegen::for_each_place(s, [&](const Place& place, bool) {
        const Memory& memory = program_.memories[std::size_t(place.memory)];
        if (memory.space != Memory::Space::result) return;
        const auto result = std::size_t(memory.index);
        ++uses_[result];
        are_lines_[result] = are_lines_[result] && s.kind == Kind::store &&
                             is_written_once(place) && is_in_lines(place, *loops_.back());
      });
      for (const auto& pair : s.exchanged)
        for (const int memory : pair)
          if (program_.memories[std::size_t(memory)].space == Memory::Space::result)
            are_lines_[std::size_t(program_.memories[std::size_t(memory)].index)] = false;
      loops_.push_back(&s);
      for (const codegen::Block& inner : s.blocks) visit(inner);
      loops_.pop_back();
    }
  }
  // Whether the innermost loop around it has lanes, and all steps of all loops go to different
  // elements: each stride exceeds what those below it reach together.
  bool is_written_once(const Place& place) const {
    if (loops_.empty() || !(loops_.back()->is_parallel || loops_.back()->kind == Kind::combine))
      return false;
    std::vector<std::pair<std::int64_t, std::int64_t>> strides;  // and steps
    for (const Statement* loop : loops_) {
      if (loop->kind != Kind::repeat && loop->kind != Kind::combine) return false;
      const Number counter = loop->kind == Kind::combine ? loop->counter : loop->value;
      if (loop->steps > 1)
        strides.emplace_back(std::abs(codegen::stride_of(place, counter)), loop->steps);
    }
    std::sort(strides.begin(), strides.end());
    std::int64_t reached = 0;
    return std::all_of(strides.begin(), strides.end(), [&](const auto& each) {
      return each.first > std::exchange(reached, reached + each.first * (each.second - 1));
    });
  }
  // Lanes of so many bytes begin and end with a line.
  bool is_in_lines(const Place& place, const Statement& lanes) const {
    constexpr std::int64_t line = 64;
    const std::int64_t bytes = size_of(program_.memories[std::size_t(place.memory)].dtype);
    const Number counter = lanes.kind == Kind::combine ? lanes.counter : lanes.value;
    const std::int64_t together = lanes.kind == Kind::combine
                                      ? codegen::num_lanes_of_combination(program_, lanes)
                                      : codegen::num_lanes(program_, lanes, machine().vector_bytes);
    bool goes_along = false;
    for (const Place::Term& term : place.terms) {
      const bool is_lane = term.index == counter;
      goes_along = goes_along || (is_lane && term.stride == 1);
      if (!is_lane && term.stride * bytes % line != 0) return false;
    }
    return goes_along && place.offset * bytes % line == 0 && together * bytes % line == 0;
  }

  const LoopProgram& program_;
  std::vector<const Statement*> loops_;  // around what is visited
  std::vector<bool> are_lines_;
  std::vector<int> uses_;
};
std::vector<bool> streams_of(const LoopProgram& program) { return Streams(program).take(); }

class ProgramWriter {
 public:
  ProgramWriter(const LoopProgram& program, std::span<const Statement* const> checks,
                const codegen::Calls& calls, const std::vector<bool>& streams)
      : program_(program),
        checks_(checks),
        calls_(calls),
        streams_(streams),
        emitter_(1),
        values_(program.dtypes.size()),
        has_lanes_(program.dtypes.size(), false),
        are_literals_(program.dtypes.size(), false),
        differs_(codegen::find_lanes(program)),
        memories_(program.memories.size() + num_extras) {
    for (std::size_t i = 0; i < memories_.size(); ++i) load_memory(i);
    for (const auto& [value, literal] : program.literals) {
      at(value) = constant_of(literal).v;
      are_literals_[std::size_t(value)] = true;
    }
    write(program.body);
    emitter_.return_void();
  }
  Object compile() const { return emitter_.compile(); }

 private:
  // Writes with a number of lanes.
  class Lanes {
   public:
    Lanes(Emitter& emitter, int lanes) : emitter_(emitter), before_(emitter.set_lanes(lanes)) {}
    ~Lanes() { emitter_.set_lanes(before_); }
    Lanes(const Lanes&) = delete;

   private:
    Emitter& emitter_;
    const int before_;
  };

  Value constant(std::int64_t value) const { return emitter_.constant(value); }
  Value& at(Number number) { return values_[std::size_t(number)]; }
  Register number(Number number) { return {at(number), program_.dtypes[std::size_t(number)]}; }
  // Whether a loop or a branch carries a number for each lane.
  bool carries_lanes(const Statement::Carry& carry) const {
    return count_ > 0 && differs_[std::size_t(carry.value)];
  }
  Value carried(const Statement::Carry& carry, Number number) {
    return carries_lanes(carry) ? in_lanes(number).v : at(number);
  }
  std::vector<Value> numbers(const std::vector<Statement::Carry>& carries,
                             Number Statement::Carry::* which) {
    std::vector<Value> values;
    for (const Statement::Carry& carry : carries) values.push_back(carried(carry, carry.*which));
    return values;
  }
  void set_carried(const std::vector<Statement::Carry>& carries, Number Statement::Carry::* which,
                   std::span<const Value> values) {
    for (std::size_t i = 0; i < carries.size(); ++i)
      define(carries[i].*which, values[i], carries_lanes(carries[i]));
  }
  std::size_t place_of(Extra slot) const { return program_.memories.size() + std::size_t(slot); }
  Value extra(Extra slot) const { return memories_[place_of(slot)]; }
  // As the function that is written was given it.
  void load_memory(std::size_t i) {
    memories_[i] = emitter_.load(emitter_.pointer(), pointer_at(emitter_.parameter(0), i), 8);
  }
  Value pointer_at(Value table, std::size_t i) const {
    return emitter_.at(emitter_.pointer(), table, constant(std::int64_t(i)));
  }

  Type element(int memory) const {
    return emitter_.element(program_.memories[std::size_t(memory)].dtype);
  }
  Value offset(const Place& place) {
    Value sum = nullptr;
    for (const Place::Term& term : place.terms) {
      Value part = at(term.index);
      if (term.stride != 1) part = emitter_.multiply(part, constant(term.stride));
      sum = sum ? emitter_.add(sum, part) : part;
    }
    if (!sum) return constant(place.offset);
    return place.offset == 0 ? sum : emitter_.add(sum, constant(place.offset));
  }
  Value address(int memory, Value offset) const {
    return emitter_.at(element(memory), memories_[std::size_t(memory)], offset);
  }
  int alignment(int memory) const {
    return int(size_of(program_.memories[std::size_t(memory)].dtype));
  }

  static std::int64_t steps_of_piece(double work_of_step) {
    return std::int64_t(std::bit_floor(std::uint64_t(std::max(piece_of_loop / work_of_step, 1.0))));
  }
  // Asks, in the last step of each piece, whether to stop.
  void ask(Value step, double work_of_step) {
    const std::int64_t last = steps_of_piece(work_of_step) - 1;
    const Value place = api().BuildAnd(emitter_.builder(), step, constant(last), "");
    const Value is_end =
        api().BuildNot(emitter_.builder(), emitter_.is_unequal(place, constant(last)), "");
    const auto stops = [&](Value answer) { return emitter_.is_unequal(answer, constant(0)); };
    // A short step feels a second branch. A long one is a tenth slower with the call and the return
    // in one branch, for what libLLVM makes of its registers then.
    if (work_of_step <= short_step)
      return emitter_.branch_if(is_end,
                                [&] { emitter_.return_if(stops(answer_of_watch()), [] {}); });
    const std::vector<Value> answer = emitter_.choose(
        is_end, [&] { return std::vector{answer_of_watch()}; },
        [&] { return std::vector{constant(0)}; });
    emitter_.return_if(stops(answer[0]), [] {});
  }
  Value answer_of_watch() const {
    Type parameter = emitter_.pointer();
    const Type type = api().FunctionType(emitter_.integer(64), &parameter, 1, false);
    Value watch = extra(watch_slot);
    return api().BuildCall2(emitter_.builder(), type, extra(ask_slot), &watch, 1, "");
  }
  // Steps that carry nothing, `together` at a time: a loop over pieces asks, where there are
  // several, so that the steps themselves do not.
  template <class F>
  void write_pieces(Value begin, Value end, std::int64_t together, std::int64_t steps, double work,
                    const F& write_from) {
    if (double(steps) * work <= piece_of_loop)
      return emitter_.loop(begin, end, together, write_from);
    const std::int64_t piece = std::max(together, steps_of_piece(work) / together * together);
    emitter_.loop(begin, end, piece, [&](Value first) {
      emitter_.loop(first, emitter_.smaller(end, emitter_.add(first, constant(piece))), together,
                    write_from);
      emitter_.return_if(emitter_.is_unequal(answer_of_watch(), constant(0)), [] {});
    });
  }

  void write(const codegen::Block& block) {
    if (count_ > 0) {
      for (const Statement& s : block) write(s);
      return;
    }
    const std::vector<std::vector<std::size_t>> order =
        codegen::functions_together(program_, block, machine().vector_bytes);
    for (std::size_t next = 0; next < order.size(); ++next) {
      const std::vector<std::size_t>& each = order[next];
      if (each.size() > 1) {
        write_as_lanes(block, each);
      } else if (block[each[0]].kind != Kind::combine) {
        write(block[each[0]]);
      } else {
        const std::size_t together = codegen::combines_together(block, each[0]);
        combine_together(std::span(block).subspan(each[0], together));
        next += together - 1;  // these follow in any order
      }
    }
  }
  // The same function of several numbers.
  void write_as_lanes(const codegen::Block& block, std::span<const std::size_t> which) {
    const Lanes with(emitter_, int(std::bit_ceil(which.size())));
    const Statement& first = block[which[0]];
    std::vector<Register> operands;
    for (std::size_t o = 0; o < first.operands.size(); ++o) {
      operands.push_back(
          {emitter_.splat(at(first.operands[o])), program_.dtypes[std::size_t(first.operands[o])]});
      for (std::size_t lane = 1; lane < which.size(); ++lane)
        operands[o].v =
            emitter_.insert(operands[o].v, at(block[which[lane]].operands[o]), int(lane));
    }
    const Value results = apply(*first.primitive, first.params, operands, first.value);
    for (std::size_t lane = 0; lane < which.size(); ++lane)
      define(block[which[lane]].value, emitter_.extract(results, int(lane)), false);
  }

  void write(const Statement& s) {
    const bool was_repeated = is_repeated_;
    is_repeated_ = was_repeated || s.kind == Kind::loop ||
                   (s.kind == Kind::repeat && !s.is_parallel && !s.is_apart);
    write_one(s);
    is_repeated_ = was_repeated;
  }
  void write_one(const Statement& s) {
    switch (s.kind) {
      case Kind::compute:
        return write_compute(s);
      case Kind::load:
        return write_load(s);
      case Kind::store:
        return write_store(s);
      case Kind::combine:
        return count_ > 0 ? combine_in_lanes(s) : combine_together(std::span(&s, 1));
      case Kind::copy:
        return write_copy(s, 0, offset(s.place), offset(s.source_place));
      case Kind::check:
        return write_check(s);
      case Kind::repeat:
        return s.grain > 0 ? write_shared(s) : write_steps(s, constant(0), constant(s.steps));
      case Kind::loop: {
        if (count_ > 0 && differs_[std::size_t(s.operands[0])]) return loop_in_lanes(s);
        const double work = work_of(s.blocks[0]) + work_of(s.blocks[1]);
        std::vector<Value> start = start_of(s);
        start.push_back(constant(0));  // steps
        const std::vector<Value> last = emitter_.while_carrying(
            start,
            [&](const std::vector<Value>& carried) {
              enter(s, carried);
              write(s.blocks[0]);
              return at(s.operands[0]);
            },
            [&](const std::vector<Value>& carried) {
              ask(carried.back(), work);
              write(s.blocks[1]);
              std::vector<Value> next = next_of(s);
              next.push_back(emitter_.add(carried.back(), constant(1)));
              return next;
            });
        return leave(s, last, start);
      }
      case Kind::branch:
        return set_carried(s.carries, &Statement::Carry::value, write_alternative(s, 0));
      case Kind::call:
        return write_call(s);
    }
  }

  // The steps from `begin` to `end` of a loop: all, or, of a loop that carries nothing, a share
  // that begins at a multiple of unit_of(s).
  void write_steps(const Statement& s, Value begin, Value end) {
    if (s.is_parallel) return write_parallel(s, begin, end);
    if (is_of_rows(s)) return write_rows(s, begin, end);
    const double work = work_of(s.blocks[0]);
    if (s.carries.empty() && s.exchanged.empty())
      return write_pieces(begin, end, 1, s.steps, work, [&](Value step) {
        at(s.value) = step;
        write(s.blocks[0]);
      });
    const std::vector<Value> start = start_of(s);
    const std::vector<Value> last = emitter_.loop_carrying(
        begin, end, 1, start, [&](Value step, const std::vector<Value>& carried) {
          at(s.value) = step;
          enter(s, carried);
          if (double(s.steps) * work > piece_of_loop) ask(step, work);
          write(s.blocks[0]);
          return next_of(s);
        });
    leave(s, last, start);
  }
  int unit_of(const Statement& s) const {
    return s.is_parallel ? lanes_of(s) : is_of_rows(s) ? codegen::rows_together : 1;
  }

  void write_shared(const Statement& s) {
    codegen::Effects effects;
    effects.add(s);
    std::set<Number> numbers;
    for (Number used : effects.used)
      if (is_from_outside(used, effects)) numbers.insert(used);
    std::set<std::size_t> memories;
    for (const std::vector<int>* used : {&effects.reads, &effects.writes})
      memories.insert(used->begin(), used->end());
    for (int slot = 0; slot < num_extras; ++slot) memories.insert(place_of(Extra(slot)));
    const Value share = write_share(s, numbers, memories);
    const Value held =
        emitter_.frame_memory(emitter_.integer(64), std::int64_t(numbers.size()) + 1);
    std::size_t next = 0;
    for (const Number used : numbers)
      emitter_.store(to_memory(number(used)), number_at(held, next++), 8);
    const Value table = emitter_.frame_memory(emitter_.pointer(), std::int64_t(memories_.size()));
    for (std::size_t i : memories)
      emitter_.store(i == place_of(numbers_slot) ? held : memories_[i], pointer_at(table, i), 8);
    Type parameters[] = {emitter_.pointer(),   emitter_.pointer(),   emitter_.pointer(),
                         emitter_.integer(64), emitter_.integer(64), emitter_.integer(64),
                         emitter_.integer(64)};
    const Type type = api().FunctionType(emitter_.integer(64), parameters, 7, false);
    Value arguments[] = {extra(shares_slot),
                         share,
                         table,
                         constant(s.steps),
                         constant(s.grain),
                         constant(unit_of(s)),
                         constant(is_repeated_)};
    const Value stops =
        api().BuildCall2(emitter_.builder(), type, extra(share_slot), arguments, 7, "");
    emitter_.return_if(emitter_.is_unequal(stops, constant(0)), [] {});
    if (!program_.fails_by_example) return;
    const Value failed = emitter_.load(emitter_.integer(64), extra(failed_slot), 8);
    emitter_.return_if(emitter_.is_unequal(failed, constant(0)), [] {});
  }
  bool is_literal(Number number) const { return are_literals_[std::size_t(number)]; }
  bool is_from_outside(Number number, const codegen::Effects& effects) const {
    return std::find(effects.defined.begin(), effects.defined.end(), number) ==
               effects.defined.end() &&
           !is_literal(number);
  }
  // The function of a share. In it, numbers and memories are what the caller left for it.
  Value write_share(const Statement& s, const std::set<Number>& numbers,
                    const std::set<std::size_t>& memories) {
    const std::vector<Value> outer_values = values_, outer_memories = memories_;
    const Value share = emitter_.function([&] {
      for (const std::size_t i : memories) load_memory(i);
      std::size_t next = 0;
      for (const Number used : numbers) {
        const DType dtype = program_.dtypes[std::size_t(used)];
        const Value held =
            emitter_.load(emitter_.element(dtype), number_at(extra(numbers_slot), next++), 8);
        at(used) = from_memory(held, dtype).v;
      }
      write_steps(s, emitter_.parameter(1), emitter_.parameter(2));
    });
    values_ = outer_values, memories_ = outer_memories;
    return share;
  }
  Value number_at(Value held, std::size_t i) const {
    return emitter_.at(emitter_.integer(64), held, constant(std::int64_t(i)));
  }

  // What a loop carries: numbers, and the places of memories that change places.
  std::vector<Value> carried_of(const Statement& s, Number Statement::Carry::* which) {
    std::vector<Value> values = numbers(s.carries, which);
    for (const auto& pair : s.exchanged)
      for (const int memory : pair) values.push_back(memories_[std::size_t(memory)]);
    return values;
  }
  std::vector<Value> start_of(const Statement& s) {
    return carried_of(s, &Statement::Carry::first);
  }
  std::vector<Value> next_of(const Statement& s) {
    std::vector<Value> values = carried_of(s, &Statement::Carry::next);
    for (std::size_t i = s.carries.size(); i < values.size(); i += 2)
      std::swap(values[i], values[i + 1]);
    return values;
  }
  void place_memories(const Statement& s, std::span<const Value> values) {
    std::size_t next = s.carries.size();
    for (const auto& pair : s.exchanged)
      for (const int memory : pair) memories_[std::size_t(memory)] = values[next++];
  }
  void enter(const Statement& s, std::span<const Value> values) {
    set_carried(s.carries, &Statement::Carry::value, values.first(s.carries.size()));
    place_memories(s, values);
  }
  // start: where the memories belong.
  void leave(const Statement& s, std::span<const Value> last, std::span<const Value> start) {
    set_carried(s.carries, &Statement::Carry::last, last.first(s.carries.size()));
    place_memories(s, start);
    if (s.exchanged.empty() || (s.kind == Kind::repeat && s.steps % 2 == 0)) return;
    const std::size_t first = s.carries.size();
    emitter_.branch_if(emitter_.is_unequal(last[first], start[first]), [&] {
      for (std::size_t i = 0; i < s.exchanged.size(); ++i) {
        const auto [a, b] = s.exchanged[i];
        if (s.regions.empty())
          swap_contents(a, b, constant(0), program_.memories[std::size_t(a)].size);
        else
          swap_region(a, b, s.regions[i], 0, offset(s.regions[i].place));
      }
    });
  }
  void swap_region(int a, int b, const Statement::Region& region, std::size_t axis, Value first) {
    if (axis + 1 == region.shape.size()) return swap_contents(a, b, first, region.shape[axis]);
    emitter_.loop(constant(0), constant(region.shape[axis]), 1, [&](Value index) {
      swap_region(a, b, region, axis + 1,
                  emitter_.add(first, emitter_.multiply(index, constant(region.strides[axis]))));
    });
  }
  // Elements side by side.
  void swap_contents(int a, int b, Value first, std::int64_t size) {
    const auto swap = [&](Value index, int count) {
      const Lanes with(emitter_, count);
      const Type type = count == 1 ? element(a) : emitter_.vector(element(a));
      const Value place = emitter_.add(first, index);
      const Value of_a = emitter_.load(type, address(a, place), alignment(a)),
                  of_b = emitter_.load(type, address(b, place), alignment(b));
      emitter_.store(of_b, address(a, place), alignment(a));
      emitter_.store(of_a, address(b, place), alignment(b));
    };
    constexpr int together = 8;
    const std::int64_t whole = size / together * together;
    if (whole > 0)
      emitter_.loop(constant(0), constant(whole), together,
                    [&](Value index) { swap(index, together); });
    if (whole < size)
      emitter_.loop(constant(whole), constant(size), 1, [&](Value index) { swap(index, 1); });
  }

  // --- Lanes -------------------------------------------------------------------------------------

  bool has_lanes(Number number) const { return has_lanes_[std::size_t(number)]; }
  bool goes_by_lanes(const Place& place) const {
    return std::any_of(place.terms.begin(), place.terms.end(),
                       [&](const Place::Term& term) { return has_lanes(term.index); });
  }
  void define(Number number, Value value, bool lanes) {
    at(number) = value;
    ramps_.erase(number);
    has_lanes_[std::size_t(number)] = lanes;
  }
  // With a value in each of the lanes.
  Register in_lanes(Number number) {
    const DType dtype = program_.dtypes[std::size_t(number)];
    if (has_lanes(number)) return {at(number), dtype};
    const auto found = splats_.find(number);
    if (found != splats_.end() && found->second.lanes == emitter_.lanes())
      return {found->second.value, dtype};
    return {emitter_.splat(at(number)), dtype};
  }
  void forget_splats() {
    splats_.clear();
    narrow_splats_.clear();
  }
  // Puts the numbers that a loop of lanes has from outside in every lane, before the loop.
  void splat_before(const Statement& loop) {
    std::set<Number> inside;
    codegen::for_each_statement(loop, [&](const Statement& s) {
      codegen::for_each_definition(s, [&](Number number) { inside.insert(number); });
    });
    for (const Statement& s : loop.blocks[0]) {
      if (s.kind != Kind::compute && s.kind != Kind::store) continue;
      const bool has_lanes =
          s.kind == Kind::store || std::any_of(s.operands.begin(), s.operands.end(),
                                               [&](Number number) { return inside.count(number); });
      if (!has_lanes) continue;
      for (const Number number : s.operands)
        if (!inside.count(number) && !is_literal(number))
          splats_[number] = {emitter_.splat(at(number)), emitter_.lanes()};
      if (s.kind != Kind::compute || *s.primitive != cmp_p) continue;
      for (const bool is_left : {true, false})
        if (const Number ramp = s.operands[is_left ? 0 : 1], other = s.operands[is_left ? 1 : 0];
            inside.count(ramp) && !inside.count(other) && is_narrow(ramp))
          narrow_splats_[&s] = narrow_splat(other, *program_.range(ramp));
    }
  }

  void write_compute(const Statement& s) {
    const bool lanes = std::any_of(s.operands.begin(), s.operands.end(),
                                   [&](Number operand) { return has_lanes(operand); });
    const Lanes with(emitter_, lanes ? emitter_.lanes() : 1);
    std::vector<Register> operands;
    for (Number operand : s.operands) operands.push_back(in_lanes(operand));
    if (const Value holds = lanes ? compared_with_ramp(s) : nullptr)
      return define(s.value, holds, true);
    define(s.value, apply(*s.primitive, s.params, operands, s.value), lanes);
    if (lanes && *s.primitive == add_p) add_to_ramp(s);
  }

  // Numbers that are one more in each lane: by number, what the first lane has.
  Value ramp_of(Number number) const {
    const auto found = ramps_.find(number);
    return found == ramps_.end() ? nullptr : found->second;
  }
  void add_to_ramp(const Statement& s) {
    for (const auto& [a, b] :
         {std::pair(s.operands[0], s.operands[1]), std::pair(s.operands[1], s.operands[0])})
      if (const Value first = ramp_of(a); first && !has_lanes(b))
        ramps_[s.value] = emitter_.add(first, at(b));
  }
  // Whether all that a number may be, and what is next to that, fits 32 bits, however many lanes.
  bool is_narrow(Number number) const {
    const std::optional<loops::Range> range = program_.range(number);
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max() - codegen::most_lanes;
    return range && -most < range->low && range->high < most &&
           program_.dtypes[std::size_t(number)] == DType::int64;
  }
  Value narrow(Value value) const {
    return api().BuildTrunc(emitter_.builder(), value, emitter_.integer(32), "");
  }
  // A number in lanes of 32 bits, to be compared with one of a range: numbers beyond that compare
  // as the one next to it does.
  Value narrow_splat(Number number, loops::Range range) {
    const Value high = emitter_.smaller(at(number), constant(range.high + 1)),
                low = constant(range.low - 1);
    return emitter_.splat(
        narrow(api().BuildSelect(emitter_.builder(), emitter_.is_less(high, low), low, high, "")));
  }
  // A ramp meets a number that all lanes share in lanes of 32 bits, which are fewer registers; or
  // nullptr.
  Value compared_with_ramp(const Statement& s) {
    if (*s.primitive != cmp_p) return nullptr;
    const bool is_left = ramp_of(s.operands[0]) != nullptr;
    const Number ramp = s.operands[is_left ? 0 : 1], other = s.operands[is_left ? 1 : 0];
    const Value first = ramp_of(ramp);
    if (!first || has_lanes(other) || !is_narrow(ramp)) return nullptr;
    std::array<Value, codegen::most_lanes> lanes;
    for (int lane = 0; lane < emitter_.lanes(); ++lane)
      lanes[std::size_t(lane)] =
          api().ConstInt(emitter_.integer(32), static_cast<unsigned long long>(lane), false);
    const auto known = narrow_splats_.find(&s);
    const Register here{emitter_.add(emitter_.splat(narrow(first)),
                                     api().ConstVector(lanes.data(), unsigned(emitter_.lanes()))),
                        DType::int32},
        there{known == narrow_splats_.end() ? narrow_splat(other, *program_.range(ramp))
                                            : known->second,
              DType::int32};
    const Register both[] = {is_left ? here : there, is_left ? there : here};
    return apply(*s.primitive, s.params, both, s.value);
  }

  Value apply(const Primitive& primitive, const Params& params, std::span<const Register> operands,
              Number result) const {
    Equation equation;
    equation.primitive = &primitive;
    equation.params = params;
    for (std::size_t i = 0; i < operands.size(); ++i) equation.inputs.push_back(Var{int(i)});
    return lower(equation, operands, program_.dtypes[std::size_t(result)]).v;
  }

  void write_load(const Statement& s) {
    const int memory = s.place.memory;
    const DType dtype = program_.memories[std::size_t(memory)].dtype;
    if (!goes_by_lanes(s.place)) {
      const Lanes with(emitter_, 1);
      const Value loaded =
          emitter_.load(element(memory), address(memory, offset(s.place)), alignment(memory));
      return define(s.value, from_memory(loaded, dtype).v, false);
    }
    const Steps steps = steps_of(s.place);
    if (steps.is_linear && steps.stride == 1)
      return define(s.value, load_lanes(dtype, address(memory, steps.first), count_).v, true);
    constexpr std::int64_t most_apart = 4;  // beyond, most of what is loaded is not wanted
    if (steps.is_linear && count_ == emitter_.lanes() && count_ > 1 &&
        (steps.stride == -1 || (2 <= steps.stride && steps.stride <= most_apart)))
      return define(
          s.value, from_memory(load_spaced(memory, steps.first, int(steps.stride)), dtype).v, true);
    Value vector = api().ConstNull(emitter_.vector(element(memory)));
    const Value places = !steps.is_linear && live_ ? live_places(steps) : nullptr;
    for (int lane = 0; lane < count_; ++lane) {
      const Value place = places ? emitter_.extract(places, lane) : steps.of(*this, lane);
      vector = emitter_.insert(
          vector, emitter_.load(element(memory), address(memory, place), alignment(memory)), lane);
    }
    define(s.value, from_memory(vector, dtype).v, true);
  }

  // Asks for what will be read soon, as many elements as there are lanes.
  void ask_for(const Statement& s, Value first_step) {
    constexpr std::int64_t line = 64;
    for (const Place& place : s.soon) {
      const std::int64_t size = size_of(program_.memories[std::size_t(place.memory)].dtype);
      const Value first = emitter_.add(offset(place), first_step);
      for (std::int64_t at = 0; at < emitter_.lanes() * size; at += line)
        emitter_.prefetch(address(place.memory, emitter_.add(first, constant(at / size))));
    }
  }

  // From vectors side by side, of which the last one ends with the last element.
  Value load_spaced(int memory, Value first, int stride) {
    const int lanes = emitter_.lanes();
    const Type type = emitter_.vector(element(memory));
    const auto vector_from = [&](int begin) {
      return emitter_.load(type, address(memory, emitter_.add(first, constant(begin))),
                           alignment(memory));
    };
    if (stride == -1) return emitter_.reversed(vector_from(1 - lanes));
    Value taken = vector_from(0);
    for (int part = 1; part < stride; ++part) {
      const int begin = part + 1 < stride ? part * lanes : (lanes - 1) * stride - (lanes - 1);
      std::vector<int> order;
      for (int lane = 0; lane < lanes; ++lane) {
        const int place = lane * stride;
        const bool is_here = part * lanes <= place && place < (part + 1) * lanes;
        order.push_back(is_here                      ? lanes + place - begin
                        : part == 1 && place < lanes ? place
                                                     : lane);
      }
      taken = emitter_.shuffle(taken, vector_from(begin), order);
    }
    return taken;
  }

  void write_store(const Statement& s) {
    const int memory = s.place.memory;
    const Number stored = s.operands[0];
    if (count_ == 0)
      return emitter_.store(to_memory(number(stored)), address(memory, offset(s.place)),
                            alignment(memory));
    const Register value = in_lanes(stored);
    const Steps steps = steps_of(s.place);
    if (steps.is_linear && steps.stride == 1)
      return store_lanes(value, address(memory, steps.first), count_, is_streamed(memory));
    const Value vector = to_memory(value);
    for (int lane = 0; lane < count_; ++lane)
      emitter_.store(emitter_.extract(vector, lane), address(memory, steps.of(*this, lane)),
                     alignment(memory));
  }

  bool is_streamed(int memory) const {
    const Memory& stored = program_.memories[std::size_t(memory)];
    return stored.space == Memory::Space::result && streams_[std::size_t(stored.index)];
  }

  // Where the lanes of an access go: a stride apart, or each by a vector of its own.
  struct Steps {
    Value first = nullptr;
    std::int64_t stride = 0;
    bool is_linear = true;
    Value offsets = nullptr;

    Value of(const ProgramWriter& writer, int lane) const {
      const Value here = writer.emitter_.add(first, writer.constant(lane * stride));
      if (is_linear) return here;
      return writer.emitter_.add(here, writer.emitter_.extract(offsets, lane));
    }
  };
  Steps steps_of(const Place& place) {
    Steps steps;
    Place scalar = place;
    scalar.terms.clear();
    for (const Place::Term& term : place.terms) {
      if (term.index == counter_) {
        steps.stride += term.stride;
      } else if (has_lanes(term.index)) {
        steps.is_linear = false;
        const Value part = emitter_.multiply(at(term.index), emitter_.splat(constant(term.stride)));
        steps.offsets = steps.offsets ? emitter_.add(steps.offsets, part) : part;
      } else {
        scalar.terms.push_back(term);
      }
    }
    steps.first = offset(scalar);
    if (steps.stride != 0)
      steps.first = emitter_.add(
          steps.first,
          steps.stride == 1 ? first_step_ : emitter_.multiply(first_step_, constant(steps.stride)));
    return steps;
  }

  // Where lanes go that are in the loop still: what the others have computed may be no place.
  Value live_places(const Steps& steps) {
    Value places = emitter_.add(steps.offsets, emitter_.splat(steps.first));
    if (steps.stride != 0)
      places = emitter_.add(places, emitter_.multiply(emitter_.ramp(constant(0)),
                                                      emitter_.splat(constant(steps.stride))));
    return api().BuildSelect(emitter_.builder(), live_, places,
                             api().ConstNull(emitter_.vector(emitter_.integer(64))), "");
  }

  // Runs f with lanes that are the steps from `first` on, of which the first `count` exist.
  template <class F>
  void with_steps(Number counter, Value first, int lanes, int count, const F& f) {
    const Lanes with(emitter_, lanes);
    counter_ = counter, first_step_ = first, count_ = count;
    define(counter, emitter_.ramp(first), true);
    ramps_[counter] = first;
    f();
    counter_ = -1, first_step_ = nullptr, count_ = 0;
  }

  int lanes_of(const Statement& parallel) const {
    static_assert(codegen::most_lanes <= Emitter::most_changed_lanes);
    return codegen::num_lanes(program_, parallel, machine().vector_bytes);
  }
  bool is_of_rows(const Statement& s) const { return count_ == 0 && codegen::combines_apart(s); }

  void write_parallel(const Statement& s, Value begin, Value end) {
    const codegen::Block& block = s.blocks[0];
    const int lanes = lanes_of(s);
    const std::int64_t whole = s.steps / lanes * lanes;
    forget_splats();
    {
      const Lanes with(emitter_, lanes);
      splat_before(s);
    }
    const auto write_lanes = [&](Value first) {
      with_steps(s.value, first, lanes, lanes, [&] {
        ask_for(s, first);
        write(block);
      });
    };
    if (whole == lanes && s.grain == 0)
      write_lanes(begin);
    else if (whole > 0)
      emitter_.loop(begin, emitter_.smaller(end, constant(whole)), lanes, write_lanes);
    const auto write_rest = [&] {
      with_steps(s.value, constant(whole), lanes, int(s.steps - whole), [&] { write(block); });
    };
    if (whole < s.steps && s.grain > 0)
      emitter_.branch_if(emitter_.is_less(constant(whole), end), write_rest);
    else if (whole < s.steps)
      write_rest();
  }

  // A while loop in each lane, until none goes on. Lanes that have ended keep their numbers.
  void loop_in_lanes(const Statement& s) {
    const auto set_all = [&](std::span<const Value> values) {
      for (std::size_t i = 0; i < s.carries.size(); ++i)
        define(s.carries[i].value, values[i], true);
    };
    const auto holds = [&](std::span<const Value> values) {
      set_all(values);
      write(s.blocks[0]);
      return in_lanes(s.operands[0]).v;
    };
    std::vector<Value> start;
    for (const Statement::Carry& carry : s.carries) start.push_back(in_lanes(carry.first).v);
    const auto both = [&](Value a, Value b) {
      return api().BuildAnd(emitter_.builder(), a, b, "");
    };
    const Value outer = live_;
    Value goes_on = holds(start);
    if (const Value live = live_lanes()) goes_on = both(goes_on, live);
    start.push_back(goes_on);
    start.push_back(constant(0));  // steps
    const double work = work_of(s.blocks[0]) + work_of(s.blocks[1]);
    const std::size_t n = s.carries.size();
    const std::vector<Value> last = emitter_.while_carrying(
        start, [&](const std::vector<Value>& carried) { return emitter_.any(carried[n]); },
        [&](const std::vector<Value>& carried) {
          ask(carried[n + 1], work);
          set_all(std::span(carried).first(n));
          live_ = carried[n];
          write(s.blocks[1]);
          std::vector<Value> next;
          for (std::size_t i = 0; i < n; ++i)
            next.push_back(api().BuildSelect(emitter_.builder(), carried[n],
                                             in_lanes(s.carries[i].next).v, carried[i], ""));
          next.push_back(both(carried[n], holds(next)));
          next.push_back(emitter_.add(carried[n + 1], constant(1)));
          return next;
        });
    live_ = outer;
    for (std::size_t i = 0; i < n; ++i) define(s.carries[i].last, last[i], true);
  }
  // Those that exist and have not left a while loop around; nullptr for all.
  Value live_lanes() const {
    return live_ ? live_ : count_ < emitter_.lanes() ? first_lanes(count_) : nullptr;
  }

  // --- Combinations ------------------------------------------------------------------------------

  // Numbers with the terms of a step taken in; all have the lanes that are written.
  Value take_in(const Statement& s, Value into) {
    std::vector<Value> terms;
    for (std::size_t i = 1; i < s.operands.size(); ++i) terms.push_back(in_lanes(s.operands[i]).v);
    return combined(s, into, terms);
  }
  Value combined(const Statement& s, Value into, std::span<const Value> terms) const {
    if (*s.primitive == dot_general_p) return detail::fused_multiply_add(terms[0], terms[1], into);
    std::vector<Register> operands{{into, program_.dtypes[std::size_t(s.value)]}};
    for (std::size_t i = 0; i < terms.size(); ++i)
      operands.push_back({terms[i], program_.dtypes[std::size_t(s.operands[i + 1])]});
    return apply(*s.primitive, s.params, operands, s.value);
  }
  Value join(const Statement& s, Value a, Value b) const {
    const DType dtype = program_.dtypes[std::size_t(s.value)];
    const Primitive& by = *s.primitive == dot_general_p ? add_p : *s.primitive;
    const Register both[] = {{a, dtype}, {b, dtype}};
    return apply(by, {}, both, s.value);
  }

  // Numbers of one of several steps that are written together.
  using Own = std::vector<std::pair<Number, Value>>;
  void enter(const Own& own) {
    for (const auto& [number, value] : own) define(number, value, false);
  }

  // Combinations of equally many steps, whose chains of sums do not wait for each other: of some
  // statements, or one for each of some rows. The steps are lanes.
  struct Chain {
    const Statement* combine;
    const Own* row;
  };
  std::vector<Value> combine_chains(std::span<const Chain> chains) {
    return chains[0].combine->is_in_order ? combine_in_order(chains) : combine_steps(chains);
  }
  std::vector<Value> combine_rows(const Statement& s, std::span<const Own> rows) {
    std::vector<Chain> chains;
    for (const Own& row : rows) chains.push_back({&s, &row});
    return combine_chains(chains);
  }
  void combine_together(std::span<const Statement> statements) {
    const Own none;
    std::vector<Chain> chains;
    for (const Statement& s : statements) chains.push_back({&s, &none});
    const std::vector<Value> sums = combine_chains(chains);
    for (std::size_t i = 0; i < sums.size(); ++i) define(statements[i].value, sums[i], false);
  }

  // The terms of all lanes that exist, those of each part in order.
  Value take_in_parts(const Statement& s, Value into) {
    const int count = count_;
    std::vector<Value> all;
    for (std::size_t i = 1; i < s.operands.size(); ++i) all.push_back(in_lanes(s.operands[i]).v);
    const int lanes = emitter_.lanes();
    const Lanes with(emitter_, parts);
    for (int first = 0; first < count; first += parts) {
      std::vector<Value> terms;
      for (const Value each : all)
        terms.push_back(lanes == parts ? each : emitter_.slice(each, first, parts));
      const Value taken = combined(s, into, terms);
      into =
          first + parts <= count
              ? taken
              : api().BuildSelect(emitter_.builder(), first_lanes(count - first), taken, into, "");
    }
    return into;
  }

  std::vector<Value> combine_steps(std::span<const Chain> chains) {
    const Lanes with(emitter_, parts);
    const std::int64_t steps = chains[0].combine->steps;
    int unit = Emitter::most_changed_lanes;
    for (const Chain& chain : chains)
      unit = std::min(unit, codegen::num_lanes_of_combination(program_, *chain.combine));
    const std::int64_t whole = steps / unit * unit;
    std::vector<Value> sums;
    forget_splats();
    const bool is_one_row = chains.back().row == chains[0].row;
    for (const Chain& chain : chains) {
      enter(*chain.row);
      const Lanes with_unit(emitter_, unit);
      if (is_one_row) splat_before(*chain.combine);
    }
    for (const Chain& chain : chains) {
      enter(*chain.row);
      sums.push_back(emitter_.splat(at(chain.combine->operands[0])));
    }
    const auto take_in_all = [&](Value first, int count, std::vector<Value>& into) {
      for (std::size_t i = 0; i < chains.size(); ++i) {
        const Statement& s = *chains[i].combine;
        enter(*chains[i].row);
        with_steps(s.counter, first, unit, count, [&] {
          ask_for(s, first);
          write(s.blocks[0]);
          into[i] = take_in_parts(s, into[i]);
        });
      }
    };
    if (whole > 0)
      sums = emitter_.loop_carrying(constant(0), constant(whole), unit, sums,
                                    [&](Value first, std::vector<Value> carried) {
                                      take_in_all(first, unit, carried);
                                      return carried;
                                    });
    if (whole < steps) take_in_all(constant(whole), int(steps - whole), sums);
    for (std::size_t i = 0; i < sums.size(); ++i)
      for (int width = parts / 2; width > 0; width /= 2) {
        const Lanes fewer(emitter_, width);
        const bool is_last = width == 1;
        const Value sum = sums[i];
        sums[i] = join(*chains[i].combine,
                       is_last ? emitter_.extract(sum, 0) : emitter_.slice(sum, 0, width),
                       is_last ? emitter_.extract(sum, 1) : emitter_.slice(sum, width, width));
      }
    return sums;
  }

  std::vector<Value> combine_in_order(std::span<const Chain> chains) {
    std::vector<Value> start;
    for (const Chain& chain : chains) {
      enter(*chain.row);
      start.push_back(at(chain.combine->operands[0]));
    }
    return emitter_.loop_carrying(constant(0), constant(chains[0].combine->steps), 1, start,
                                  [&](Value step, std::vector<Value> carried) {
                                    for (std::size_t i = 0; i < chains.size(); ++i) {
                                      const Statement& s = *chains[i].combine;
                                      enter(*chains[i].row);
                                      define(s.counter, step, false);
                                      write(s.blocks[0]);
                                      carried[i] = take_in(s, carried[i]);
                                    }
                                    return carried;
                                  });
  }

  void write_rows(const Statement& s, Value begin, Value end) {
    using codegen::rows_together;
    const codegen::Block& block = s.blocks[0];
    const auto write_from = [&](Value first, int count) {
      std::vector<Own> rows(static_cast<std::size_t>(count));
      for (int row = 0; row < count; ++row)
        rows[std::size_t(row)].emplace_back(s.value,
                                            row == 0 ? first : emitter_.add(first, constant(row)));
      for (const Statement& each : block) {
        if (each.kind == Kind::combine) {
          const std::vector<Value> sums = combine_rows(each, rows);
          for (std::size_t row = 0; row < rows.size(); ++row)
            rows[row].emplace_back(each.value, sums[row]);
          continue;
        }
        for (Own& own : rows) {
          enter(own);
          write(each);
          if (each.value >= 0) own.emplace_back(each.value, at(each.value));
        }
      }
    };
    const std::int64_t whole = s.steps / rows_together * rows_together;
    if (whole > 0)
      write_pieces(begin, emitter_.smaller(end, constant(whole)), rows_together, s.steps,
                   work_of(block), [&](Value first) { write_from(first, rows_together); });
    const auto write_rest = [&] { write_from(constant(whole), int(s.steps - whole)); };
    if (whole < s.steps && s.grain > 0)
      emitter_.branch_if(emitter_.is_less(constant(whole), end), write_rest);
    else if (whole < s.steps)
      write_rest();
  }

  // One combination for each lane.
  void combine_in_lanes(const Statement& s) {
    const int num_parts = s.is_in_order ? 1 : parts;
    const std::int64_t whole = s.steps / num_parts * num_parts;
    std::vector<Value> sums(std::size_t(num_parts), in_lanes(s.operands[0]).v);
    const auto take_in_step = [&](Value step, Value& sum) {
      define(s.counter, step, false);
      write(s.blocks[0]);
      sum = take_in(s, sum);
    };
    if (whole > 0)
      sums = emitter_.loop_carrying(constant(0), constant(whole), num_parts, sums,
                                    [&](Value first, std::vector<Value> carried) {
                                      for (int part = 0; part < num_parts; ++part)
                                        take_in_step(
                                            part == 0 ? first : emitter_.add(first, constant(part)),
                                            carried[std::size_t(part)]);
                                      return carried;
                                    });
    for (std::int64_t step = whole; step < s.steps; ++step)
      take_in_step(constant(step), sums[std::size_t(step - whole)]);
    for (int width = num_parts / 2; width > 0; width /= 2)
      for (int part = 0; part < width; ++part)
        sums[std::size_t(part)] = join(s, sums[std::size_t(part)], sums[std::size_t(part + width)]);
    define(s.value, sums[0], true);
  }

  // --- Control flow, copies, checks --------------------------------------------------------------

  // Those from an alternative on.
  std::vector<Value> write_alternative(const Statement& s, std::size_t first) {
    const auto results = [&] {
      write(s.blocks[first]);
      std::vector<Value> values;
      for (const Statement::Carry& carry : s.carries)
        values.push_back(carried(carry, carry.nexts[first]));
      return values;
    };
    if (first + 1 == s.blocks.size()) return results();
    return emitter_.choose(
        emitter_.is_unequal(at(s.operands[0]), constant(std::int64_t(first))),
        [&] { return write_alternative(s, first + 1); }, results);
  }

  void write_copy(const Statement& s, std::size_t axis, Value to, Value from) {
    const int target = s.place.memory, source = s.source_place.memory;
    const bool is_last = axis + 1 == s.shape.size();
    if (is_last && s.strides[axis] == 1 &&
        (s.source_strides[axis] == 1 || s.source_strides[axis] == 0))
      return write_run(s, s.shape[axis], to, from, s.source_strides[axis] == 0);
    if (axis == s.shape.size())
      return emitter_.store(
          emitter_.load(element(source), address(source, from), alignment(source)),
          address(target, to), alignment(target));
    emitter_.loop(constant(0), constant(s.shape[axis]), 1, [&](Value index) {
      const auto moved = [&](Value offset, std::int64_t stride) {
        return emitter_.add(offset, emitter_.multiply(index, constant(stride)));
      };
      write_copy(s, axis + 1, moved(to, s.strides[axis]), moved(from, s.source_strides[axis]));
    });
  }

  // Contiguous elements of both, or one element again and again.
  void write_run(const Statement& s, std::int64_t size, Value to, Value from, bool is_one) {
    const int target = s.place.memory, source = s.source_place.memory;
    const std::int64_t lanes = std::max<std::int64_t>(4, 64 / alignment(target));
    const Value one =
        is_one ? emitter_.load(element(source), address(source, from), alignment(source)) : nullptr;
    const auto move = [&](Value index, int count) {
      const Lanes with(emitter_, count);
      const Value vector =
          is_one ? emitter_.splat(one)
                 : emitter_.load(emitter_.vector(element(source)),
                                 address(source, emitter_.add(from, index)), alignment(source));
      emitter_.store(vector, address(target, emitter_.add(to, index)), alignment(target));
    };
    const std::int64_t whole = size / lanes * lanes;
    if (whole > 0)
      emitter_.loop(constant(0), constant(whole), lanes,
                    [&](Value index) { move(index, int(lanes)); });
    for (std::int64_t done = whole, part = lanes; done < size; part /= 2)
      if (size - done >= part) {
        move(constant(done), int(part));
        done += part;
      }
  }

  void write_call(const Statement& s) {
    Value addresses = emitter_.frame_memory(emitter_.pointer(), std::int64_t(s.places.size()));
    for (std::size_t i = 0; i < s.places.size(); ++i)
      emitter_.store(address(s.places[i].memory, offset(s.places[i])),
                     emitter_.at(emitter_.pointer(), addresses, constant(std::int64_t(i))), 8);
    Type parameters[] = {emitter_.pointer(), emitter_.integer(64), emitter_.pointer()};
    const Type type = api().FunctionType(emitter_.integer(64), parameters, 3, false);
    Value arguments[] = {extra(calls_slot), constant(calls_.number_of(s)), addresses};
    const Value fails =
        api().BuildCall2(emitter_.builder(), type, extra(call_slot), arguments, 3, "");
    emitter_.return_if(emitter_.is_unequal(fails, constant(0)), [] {});
  }

  void write_check(const Statement& s) {
    const Value index = at(s.operands[0]);
    const bool lanes = has_lanes(s.operands[0]);
    const Lanes with(emitter_, lanes ? emitter_.lanes() : 1);
    Value is_outside = emitter_.is_outside(index, s.low, s.high);
    if (const Value live = lanes ? live_lanes() : nullptr)
      is_outside = api().BuildAnd(emitter_.builder(), is_outside, live, "");
    if (lanes) is_outside = emitter_.any(is_outside);
    const auto number = std::find(checks_.begin(), checks_.end(), &s) - checks_.begin() + 1;
    emitter_.return_if(is_outside, [&] {
      emitter_.store(constant(number), extra(failed_slot), 8);
      // Which lane fails first is found out step by step.
      emitter_.store(lanes ? constant(s.low - 1) : index,
                     emitter_.at(emitter_.integer(64), extra(failed_slot), constant(1)), 8);
    });
  }

  const LoopProgram& program_;
  const std::span<const Statement* const> checks_;
  const codegen::Calls& calls_;
  const std::vector<bool>& streams_;  // by result
  Emitter emitter_;
  std::vector<Value> values_;                   // by number
  std::vector<bool> has_lanes_, are_literals_;  // by number
  std::unordered_map<Number, Value> ramps_;
  struct Splat {
    Value value;
    int lanes;
  };
  std::unordered_map<Number, Splat> splats_;  // by number that all lanes share, in a loop of lanes
  std::unordered_map<const Statement*, Value> narrow_splats_;  // by comparison, in the same
  const std::vector<bool> differs_;  // by number: whether it has lanes within a parallel loop
  // Of the loop whose steps are lanes: its counter, its value in the first lane, and how many of
  // the lanes exist; 0 outside.
  Number counter_ = -1;
  Value first_step_ = nullptr;
  int count_ = 0;
  Value live_ = nullptr;         // which lanes are in the while loop still that is written
  std::vector<Value> memories_;  // by memory, then extras
  bool is_repeated_ = false;     // what is written runs in the steps of a serial loop
};

// What generated code calls kernels through: errors wait until it has returned.
struct CallsOfRun {
  codegen::RunningCalls calls;
  std::exception_ptr error = {};

  static std::int64_t run(CallsOfRun* self, std::int64_t call, void* const* addresses) {
    try {
      self->calls.run(int(call), addresses);
      return 0;
    } catch (...) {
      self->error = std::current_exception();
      return 1;
    }
  }
};

// Memory of which the steps of some loops have their own.
struct OwnMemory {
  int memory;
  std::size_t bytes;  // a multiple of a line
};

// What generated code has threads do.
class SharesOfRun {
 public:
  // num_memories: of the tables that shares are given. memory: for as many threads as there were
  // when the kernel was made.
  SharesOfRun(const Watch& watch, std::span<const OwnMemory> own, std::size_t num_memories,
              char* memory, int num_threads_then)
      : watch_(watch), own_(own), num_memories_(num_memories), memory_(memory) {
    for (const OwnMemory& each : own) bytes_ += each.bytes;
    const int threads = num_threads();
    num_blocks_ = std::min(threads, most_threads);
    if (bytes_ == 0 || threads <= num_threads_then) return;
    more_ = Storage::allocate(bytes_ * std::size_t(threads));
    memory_ = static_cast<char*>(more_.data());
  }

  // Runs the steps of a loop, shared in units of `unit`. is_repeated: it is one that others of this
  // run follow closely. Returns whether to stop.
  static std::int64_t run(SharesOfRun* self, Function* share, void* const* table,
                          std::int64_t steps, std::int64_t grain, std::int64_t unit,
                          std::int64_t is_repeated) {
    const std::int64_t units = (steps + unit - 1) / unit,
                       units_of_grain = std::max<std::int64_t>(1, grain / unit);
    const std::int64_t least = is_repeated ? self->close_.begin(units, units_of_grain)
                                           : grain_while_spinning(units, units_of_grain);
    parallel_for(units, least, [&](std::int64_t begin, std::int64_t end) {
      self->run_range(share, table, begin * unit, std::min(end * unit, steps));
    });
    if (is_repeated) self->close_.end();
    return self->watch_.is_stopped.load(std::memory_order_relaxed);
  }

 private:
  void run_range(Function* share, void* const* table, std::int64_t begin, std::int64_t end) {
    if (own_.empty()) return share(table, begin, end);
    constexpr std::size_t few = 64;
    std::array<void*, few> of_few;
    const std::unique_ptr<void*[]> of_many =
        num_memories_ > few ? std::make_unique<void*[]>(num_memories_) : nullptr;
    void** const mine = of_many ? of_many.get() : of_few.data();
    std::copy(table, table + num_memories_, mine);
    const int block = take();
    char* at = memory_ + std::size_t(block) * bytes_;
    for (const OwnMemory& each : own_)
      mine[std::size_t(each.memory)] = std::exchange(at, at + each.bytes);
    share(mine, begin, end);
    is_taken_[std::size_t(block)].store(false, std::memory_order_release);
  }
  // Memory that no share on another thread uses.
  int take() {
    for (int block = 0;; block = (block + 1) % most_threads)
      if (block < num_blocks_ && !is_taken_[std::size_t(block)].exchange(true)) return block;
  }

  static constexpr int most_threads = 64;  // of a loop: see pool.cpp
  const Watch& watch_;
  const std::span<const OwnMemory> own_;
  const std::size_t num_memories_;
  CloseLoops close_;
  char* memory_;
  std::size_t bytes_ = 0;  // of a thread
  int num_blocks_ = 1;
  Storage more_;
  std::array<std::atomic<bool>, most_threads> is_taken_{};  // by part of the memory
};

class ProgramKernel final : public Kernel {
 public:
  explicit ProgramKernel(LoopProgram program) : ProgramKernel(std::move(program), {}, {}) {}
  // group: the equations that it is. strides: by which the program reads its inputs.
  ProgramKernel(LoopProgram program, Jaxpr group, std::vector<Sizes64> strides)
      : program_(std::move(program)),
        group_(std::move(group)),
        strides_(std::move(strides)),
        calls_(program_) {
    for (const Memory& memory : program_.memories) {
      if (memory.has_index()) {
        slots_.push_back(slot_of(memory));
      } else {
        slots_.push_back({memory.space, std::size_t(frame_bytes_)});
        frame_bytes_ += memory::staggered(memory.size * size_of(memory.dtype));
      }
    }
    scratch_at_ = frame_bytes_;
    frame_bytes_ += calls_.scratch_bytes();
    collect_checks(program_.body, checks_);
    for (const int memory : codegen::memories_of_steps(program_)) {
      const Memory& each = program_.memories[std::size_t(memory)];
      own_.push_back({memory, std::size_t((each.size * size_of(each.dtype) + 63) / 64 * 64)});
    }
    own_at_ = (frame_bytes_ + 63) / 64 * 64;
    num_threads_ = num_threads();
    std::size_t own_bytes = 0;
    for (const OwnMemory& each : own_) own_bytes += each.bytes;
    if (own_bytes > 0) frame_bytes_ = own_at_ + std::int64_t(own_bytes) * num_threads_;
    is_plain_ = checks_.empty() && calls_.size() == 0 && codegen::num_shared(program_.body) == 0 &&
                !may_ask(program_) && !compile_passes::counts_lane_work(program_);
    code_.emplace("loop program, 18" +
                      std::string(program_.fails_by_example ? ", by example" : "") + "\n" +
                      codegen::print(program_),
                  streams_of(program_), [this](const std::vector<bool>& streams) {
                    return ProgramWriter(program_, checks_, calls_, streams).compile();
                  });
  }

  std::int64_t scratch_bytes() const override { return frame_bytes_; }
  bool is_whole() const override { return true; }
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    return codegen::may_overwrite(program_, input, output);
  }
  std::string note() const override {
    const int shared = codegen::num_shared(program_.body);
    std::string note = "one loop program";
    if (shared > 0)
      note += ", " + std::to_string(shared) + (shared == 1 ? " loop" : " loops") + " on threads";
    const std::string copies = codegen::copies_in_loops(program_);
    return note + (copies.empty() ? "" : "; " + copies);
  }
  std::optional<Prediction> prediction() const override {
    const codegen::Prediction predicted =
        codegen::predict(program_, codegen::measured_machine(machine().vector_bytes));
    return Prediction{predicted.ns * 1e-9, predicted.to_string()};
  }

  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
               const Launch& launch) const override {
    constexpr std::size_t few = 48;
    std::array<void*, few> of_few;
    const std::size_t count = program_.memories.size() + num_extras;
    const std::unique_ptr<void*[]> of_many =
        count > few ? std::make_unique<void*[]>(count) : nullptr;
    void** const memory = of_many ? of_many.get() : of_few.data();
    std::vector<Buffer> copies;
    void** next = memory;
    for (const Slot& slot : slots_) {
      if (slot.space == Memory::Space::result) {
        *next++ = outputs[slot.at].data;
      } else if (slot.space != Memory::Space::operand) {
        *next++ = static_cast<char*>(scratch) + slot.at;
      } else if (const View& input = inputs[slot.at]; slot.reads(input)) {
        *next++ = input.data;
      } else {
        copies.push_back(Buffer::copy_of(input));
        *next++ = copies.back().mutable_data();
      }
    }
    if (is_plain_) return code_->code_for(inputs, outputs).as<Function>()(memory, 0, 1);
    run_watched(memory, count, inputs, outputs, static_cast<char*>(scratch), launch);
  }

 private:
  // Where a memory lies: the number of an operand or a result, or an offset in the scratch memory.
  struct Slot {
    Memory::Space space;
    std::size_t at;
    bool is_dense = false;             // whether the program reads it as if dense
    const Sizes64* strides = nullptr;  // by which it reads it, where that is known

    // Of an operand, whether it is read where it lies. The usual one is found dense without a call,
    // which short kernels would feel.
    bool reads(const View& view) const {
      if (!is_dense) return true;
      if (!strides) return view.is_dense();
      const std::int64_t *wanted = strides->begin(), *given = view.strides.begin();
      while (wanted != strides->end() && *wanted == *given) ++wanted, ++given;
      return wanted == strides->end() || view.is_dense();
    }
  };
  Slot slot_of(const Memory& memory) const {
    const auto at = std::size_t(memory.index);
    if (memory.space == Memory::Space::result || at >= strides_.size())
      return {memory.space, at, memory.space == Memory::Space::operand};
    const Sizes64 dense = dense_strides(group_->input_avals()[at].shape.to_sizes());
    return {memory.space, at, strides_[at] == dense, &strides_[at]};
  }

  void run_watched(void** memory, std::size_t count, std::span<const View> inputs,
                   std::span<const View> outputs, char* scratch, const Launch& launch) const {
    Failure failure{};
    Watch watch;
    CallsOfRun calls{{calls_, scratch + scratch_at_, launch}};
    SharesOfRun shares(watch, own_, count, scratch + own_at_, num_threads_);
    void** const extras = memory + program_.memories.size();
    extras[failed_slot] = failure.data();
    extras[ask_slot] = reinterpret_cast<void*>(&Watch::ask);
    extras[watch_slot] = &watch;
    extras[call_slot] = reinterpret_cast<void*>(&CallsOfRun::run);
    extras[calls_slot] = &calls;
    extras[share_slot] = reinterpret_cast<void*>(&SharesOfRun::run);
    extras[shares_slot] = &shares;
    extras[numbers_slot] = nullptr;  // of shares
    code_->code_for(inputs, outputs).as<Function>()(memory, 0, 1);
    watch.interrupts.rethrow();
    if ((calls.error || failure[0] > 0) && program_.fails_by_example && group_)
      compile_passes::raise_step_by_step(group_, inputs, launch);
    if (calls.error) std::rethrow_exception(calls.error);
    if (failure[0] > 0) codegen::raise(*checks_[std::size_t(failure[0] - 1)], failure[1]);
    count_lane_work(program_, {memory, program_.memories.size()});
  }

  const LoopProgram program_;
  const Jaxpr group_;
  const std::vector<Sizes64> strides_;
  const codegen::Calls calls_;
  std::vector<const Statement*> checks_;
  std::vector<OwnMemory> own_;  // memories of which steps have their own
  std::vector<Slot> slots_;     // by memory
  std::int64_t frame_bytes_ = 0, scratch_at_ = 0, own_at_ = 0;
  int num_threads_ = 1;    // for which there is own memory
  bool is_plain_ = false;  // it only computes, for so short that nothing asks whether to stop
  std::optional<StreamingCode> code_;
};

// The program of real numbers that is written, or the reason why none is.
codegen::Split written(const codegen::Lowered& lowered) {
  if (!lowered.program) return {{}, lowered.reason};
  const bool has_complex =
      std::any_of(lowered.program->memories.begin(), lowered.program->memories.end(),
                  [](const Memory& memory) { return is_complex(memory.dtype); }) ||
      std::any_of(lowered.program->dtypes.begin(), lowered.program->dtypes.end(),
                  [](DType dtype) { return is_complex(dtype); });
  codegen::Split split =
      has_complex ? codegen::split_complex(*lowered.program) : codegen::Split{lowered.program, {}};
  if (split.program && codegen::is_long_code(*split.program, machine().vector_bytes))
    return {{}, "too many statements"};
  return split;
}

// Whether an input is as quick to read where it lies as in a copy: it repeats elements, or its last
// axis lies side by side, and the others in any order.
bool is_read_well(const Sizes64& sizes, const Sizes64& strides) {
  constexpr std::int64_t shortest = 8;
  bool repeats = false, has_rows = false;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] == 1) continue;
    if (strides[axis] < 0) return false;
    repeats = repeats || strides[axis] == 0;
    has_rows = strides[axis] == 1 && sizes[axis] >= shortest;
  }
  return repeats || has_rows;
}

// Whether elements along an axis lie in one set of a cache, where few of their lines find room.
bool share_a_set(const Sizes64& sizes, const Sizes64& strides, DType dtype) {
  constexpr std::int64_t ways = 8, bytes_of_way = 1 << 16;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis)
    if (sizes[axis] > ways && strides[axis] * size_of(dtype) % bytes_of_way == 0) return true;
  return false;
}

// Whether inputs become dense that were not: those without rows of which the program reads more
// than a copy would, or so that a line has left the nearest cache when it reads it again, or that
// fill lanes one by one.
bool make_dense(const LoopProgram& program, std::span<const Aval> inputs,
                std::vector<Sizes64>& strides) {
  constexpr double most_reads = 2, most_between = 256;
  const std::vector<codegen::Reads> reads = codegen::reads_of(program);
  bool any = false;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const Memory& memory = program.memories[i];
    if (memory.space != Memory::Space::operand) continue;
    const auto input = std::size_t(memory.index);
    const Sizes64 sizes = inputs[input].shape.to_sizes(), dense = dense_strides(sizes);
    if (strides[input] == dense || is_read_well(sizes, strides[input]) ||
        (reads[i].elements <= most_reads * double(num_elements(sizes)) &&
         reads[i].jumping < double(num_elements(sizes)) && reads[i].between <= most_between &&
         !share_a_set(sizes, strides[input], memory.dtype)))
      continue;
    strides[input] = dense;
    any = true;
  }
  return any;
}

}  // namespace

Support supports_program(const Equation& equation, std::span<const Aval> inputs) {
  const codegen::Split split = written(*compile_passes::loop_program(equation, inputs));
  return split.program ? Support::yes() : Support::no("no loop program: " + split.reason);
}

bool has_program(const Jaxpr& group) {
  return written(*compile_passes::loop_program(group)).program.has_value();
}

std::unique_ptr<Kernel> make_program_kernel(const Jaxpr& group, std::span<const Sizes64> given) {
  const std::span<const Aval> inputs = group->input_avals();
  const std::vector<Sizes64> dense = compile_passes::dense_inputs(group);
  std::vector<Sizes64> strides = compile_passes::inputs_as_read(group, given);
  while (true) {
    codegen::Split split = written(*compile_passes::loop_program(group, strides));
    if (split.program && !make_dense(*split.program, inputs, strides))
      return std::make_unique<ProgramKernel>(std::move(*split.program), group, strides);
    if (!split.program && std::exchange(strides, dense) == dense) break;
  }
  throw InternalError("a group has no loop program: " +
                      written(*compile_passes::loop_program(group, dense)).reason);
}

std::unique_ptr<Kernel> make_program_kernel(const LoopProgram& program) {
  codegen::Split split = written({program, {}});
  return split.program ? std::make_unique<ProgramKernel>(std::move(*split.program)) : nullptr;
}

}  // namespace plait::llvm
