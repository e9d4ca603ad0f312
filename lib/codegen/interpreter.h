// Runs loop programs without generated code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/interrupt.h>

#include <array>

#include "base/spinning.h"
#include "codegen/calls.h"

namespace plait::codegen {

// A program in the form that runs: values lie in a frame of bytes, and elementwise primitives are
// the loops of their Pointwise rules, so that every number has the bits of eager evaluation. What
// changes within a parallel loop or a combination has a lane for each of `lanes` steps, which run
// together.
// Immutable; run from many threads at once.
class Interpreter {
 public:
  explicit Interpreter(const LoopProgram& program);
  const LoopProgram& program() const { return program_; }
  std::int64_t frame_bytes() const { return frame_bytes_; }
  // operands and results lie dense in memory, apart from each other; frame has frame_bytes() bytes.
  // InternalError for an access outside of its memory. Propagates the errors of checks, and stops
  // where an interrupt does.
  void run(std::span<const View> operands, std::span<const View> results, void* frame,
           const Stream& stream = {}) const;
  // Where the memories of the program lie.
  std::vector<void*> memories(std::span<const View> operands, std::span<const View> results,
                              void* frame) const;

 private:
  struct Access {
    int memory = -1;
    std::int64_t offset = 0, size = 0, bytes = 0;  // of the memory, and of an element
    struct Term {
      int index;  // in the frame
      std::int64_t stride;
    };
    InlineVector<Term, 4> terms, lane_terms;
    std::int64_t counter_stride = 0;  // of the loop whose steps are lanes
  };
  // Where a number is copied to, for carries.
  struct Move {
    int from, to, bytes;
    bool from_lanes, to_lanes;
  };
  struct Code {
    Statement::Kind kind;
    Chunk chunk;
    std::array<int, 4> operands{};  // in the frame
    int num_operands = 0, result = -1;
    Access place, source_place;
    const Statement* statement = nullptr;  // of checks and copies
    bool has_lanes = false;                // the result; of loops, that their steps are lanes
    std::array<bool, 4> is_lanes{};        // by operand
    std::array<int, 4> bytes{};
    int counter = -1, accumulators = -1;  // of combinations, in the frame
    bool is_product = false;
    std::int64_t steps = 0;
    std::vector<Move> first, next, last;
    bool moves_in_turn = true;  // no move overwrites what a later one reads
    std::vector<std::vector<Code>> blocks;
    std::vector<std::vector<Move>> results;  // of a branch, by alternative
    int call = -1;
    std::vector<Access> places;   // of a call
    std::vector<Access> regions;  // of memories that change places
  };
  struct Run {
    char* frame;
    char** memories;
    RunningCalls* calls;
    InterruptWatch* interrupts;
    CloseLoops* shared;
  };
  static constexpr std::int64_t lanes = 64;  // a multiple of the parts of a combination

  int slot(Value value) const { return slots_[std::size_t(value)]; }
  Move move(Value from, Value to) const;
  Access access(const Place& place) const;
  Code decode(const Statement& statement);
  std::vector<Code> decode(const Block& block);
  void execute(const std::vector<Code>& codes, const Run& run) const;
  void step(const Code& code, const Run& run) const;
  void execute_lanes(const std::vector<Code>& codes, const Run& run, std::int64_t count) const;
  void step_in_lanes(const Code& code, const Run& run, std::int64_t count) const;
  void run_parallel(const Code& code, const Run& run, std::int64_t begin, std::int64_t end) const;
  void run_steps(const Code& code, const Run& run, std::int64_t begin, std::int64_t end) const;
  void run_shared(const Code& code, const Run& run) const;
  void loop_in_lanes(const Code& code, const Run& run, std::int64_t count) const;
  void combine(const Code& code, const Run& run) const;
  void combine_lanes(const Code& code, const Run& run, std::int64_t count) const;
  static void call(const Code& code, const Run& run);
  // An operand with a lane for each step.
  const char* lanes_of(const Code& code, int operand, const Run& run, std::int64_t count) const;
  static void take_in(const Code& code, char* into, const char* const* terms, std::int64_t count);
  template <class F>
  static void for_each_lane(const Access& access, const Run& run, std::int64_t count, const F& f);
  static std::int64_t element(const Access& access, const Run& run);
  static std::size_t alternative(const Code& code, const Run& run);  // of a branch
  // At the end of a step; and behind the loop.
  static void exchange(const Code& code, const Run& run);
  void exchange_back(const Code& code, const Run& run, std::int64_t steps) const;
  static void apply(const std::vector<Move>& moves, bool in_turn, char* frame);
  void apply_in_lanes(const std::vector<Move>& moves, const Run& run, std::int64_t count) const;
  // What a move moves, with a number for each lane where it has lanes there.
  static void gather(const Move& move, const char* frame, char* to, std::int64_t count);

  const LoopProgram program_;
  const Calls calls_;
  std::vector<int> slots_;               // by value: its place in the frame
  std::vector<bool> has_lanes_;          // by value
  std::vector<int> of_steps_;            // memories of which steps have their own
  Value counter_ = -1;                   // whose steps are lanes, while decoding
  int broadcast_at_ = 0;                 // in the frame: operands without lanes
  std::vector<std::int64_t> memory_at_;  // by memory of the frame: its place there
  std::vector<char> literals_;           // the beginning of the frame
  std::int64_t frame_bytes_ = 0;
  std::int64_t value_bytes_ = 0;  // the beginning of the frame, before memories
  std::int64_t scratch_at_ = 0;   // in the frame, of calls
  std::vector<Code> codes_;
};

}  // namespace plait::codegen
