// Runs loop programs without generated code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/interrupt.h>

#include <array>
#include <memory>
#include <set>
#include <unordered_map>

#include "base/spinning.h"
#include "codegen/calls.h"

namespace plait::codegen {

// A program in the form that runs: values lie in a frame of bytes, and elementwise primitives are
// the loops of their Pointwise rules, so that every number has the bits of eager evaluation. What
// changes within a parallel loop or a combination has a lane for each of many steps, which run
// together.
// Immutable; run from many threads at once.
class Interpreter {
 public:
  explicit Interpreter(const LoopProgram& program);
  ~Interpreter();
  const LoopProgram& program() const { return program_; }
  std::int64_t frame_bytes() const { return frame_bytes_; }
  // operands and results lie dense in memory, apart from each other; frame has frame_bytes() bytes.
  // InternalError for an access outside of its memory. Propagates the errors of checks, and stops
  // where an interrupt does.
  void run(std::span<const View> operands, std::span<const View> results, void* frame,
           const Launch& launch = {}) const;
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
    bool is_run() const { return lane_terms.empty() && counter_stride == 1; }
  };
  // Where a number is copied to, for carries.
  struct Move {
    int from, to, bytes;
    bool from_lanes, to_lanes;
  };
  struct More;
  // What every step looks at lies side by side.
  struct Code {
    Statement::Kind kind = Statement::Kind::compute;
    bool has_lanes = false;        // the result; of loops, that their steps are lanes
    bool is_stored = false;        // to `place`, by a computation in lanes
    bool stays_in_memory = false;  // of a load: its lanes are not copied
    std::int8_t num_operands = 0;
    std::array<bool, 4> is_lanes{};      // by operand
    std::array<bool, 4> is_in_memory{};  // by operand, of lanes: the frame says where they are
    Chunk chunk = {};
    std::array<int, 4> operands{};  // in the frame
    int result = -1;
    std::array<int, 4> bytes{};
    std::unique_ptr<More> more;
  };
  struct More {
    Access place, source_place;
    const Statement* statement = nullptr;  // of checks and copies
    int counter = -1, accumulators = -1;   // of combinations, in the frame
    bool is_product = false;
    std::int64_t steps = 0;
    bool counts = false;  // of a loop whose steps are lanes: that its counter is used as a number
    // Numbers from outside of it, for all lanes.
    struct Splat {
      int from, to;
      std::int64_t bytes;
    };
    std::vector<Splat> splats;
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
    const char* live = nullptr;  // by lane, in while loops that some have left
  };
  void place_memories(std::span<const View> operands, std::span<const View> results, void* frame,
                      char** memories) const;
  int slot(Value value) const { return slots_[std::size_t(value)]; }
  Move move(Value from, Value to) const;
  Access access(const Place& place) const;
  std::int64_t choose_lanes() const;
  std::int64_t place_lanes(const Block& block, std::int64_t base);
  std::int64_t place_values(const Statement& loop, std::int64_t end);
  Code decode(const Statement& statement);
  bool is_stored_at_once(const Block& block, std::size_t i) const;
  void find_what_stays(const Block& block);
  int splat_of(Value value);
  std::vector<Code> decode(const Block& block);
  void execute(const std::vector<Code>& codes, const Run& run) const;
  void step(const Code& code, const Run& run) const;
  void execute_lanes(const std::vector<Code>& codes, const Run& run, std::int64_t count) const;
  void step_in_lanes(const Code& code, const Run& run, std::int64_t count) const;
  void run_parallel(const Code& code, const Run& run, std::int64_t begin, std::int64_t end) const;
  void run_steps(const Code& code, const Run& run, std::int64_t begin, std::int64_t end) const;
  void run_shared(const Code& code, const Run& run) const;
  void check_lanes(const Code& code, const Run& run, std::int64_t count) const;
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
  static std::int64_t first_of_run(const Access& access, const Run& run, std::int64_t count);
  void begin_lanes(const Code& code, const Run& run) const;
  void count_lanes(const Code& code, char* counter, std::int64_t first) const;
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
  std::int64_t lanes_ = 0;                 // a multiple of the parts of a combination
  std::vector<int> slots_;                 // by value: its place in the frame
  std::vector<bool> has_lanes_;            // by value
  std::vector<int> of_steps_;              // memories of which steps have their own
  Value counter_ = -1;                     // whose steps are lanes, while decoding
  const Statement* lanes_loop_ = nullptr;  // with that counter, and its code
  Code* lanes_code_ = nullptr;
  std::unordered_map<Value, int> splats_;  // of it: their places in the frame
  std::set<Value> inside_;                 // what it defines
  std::vector<bool> stays_in_memory_;      // by value
  int broadcast_at_ = 0;                   // in the frame: operands without lanes
  std::vector<std::int64_t> memory_at_;    // by memory of the frame: its place there
  std::vector<char> literals_;             // the beginning of the frame
  std::int64_t frame_bytes_ = 0;
  std::int64_t value_bytes_ = 0;  // the beginning of the frame, before memories
  std::int64_t scratch_at_ = 0;   // in the frame, of calls
  std::vector<Code> codes_;
};

}  // namespace plait::codegen
