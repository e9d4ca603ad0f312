// Loop programs: the form between equations and machine code. Loops over numbers and memory,
// in which every access says where it goes.
//
//   memory m0: float64[64] operand 0
//   memory m1: float64[64] result 0
//   copy m0[0] -> m1[0] of (64) by (1) -> (1)  # copied: operands stay as they are
//   for v3 in 0..62 (v4: int32 = 0:i32, then v6, at last v11)
//     v6: int32 = add v4 1:i32
//     v7: float64 = load m1[v3 + 1]
//     store m1[v3] = v7
//   v9: float64 = combine add from 0.0:f64 of v8 in 0..64
//     v10: float64 = load m0[v8]
//     -> v10
//
// parse.h reads this text again. Invariants, which check() tests:
//   L1 a value is defined once, before its uses, in an enclosing block
//   L2 operands have the dtypes that the primitive takes
//   L3 an index is an int64, and accesses name memory that there is, with as many axes as it has
//   L4 operands of the program are not written
//   L5 memories that change places have one dtype and size, none twice
//   L6 the steps of a loop that is parallel are what lanes can run (see lanes.h; checks of what
//      differs between them only if fails_by_example), and read nothing that another one writes;
//      those of a combination only compute, load, store and combine, and nothing reads what another
//      one writes
//   L7 the steps of a loop that threads share are apart or parallel, write different elements, and
//      hold no calls, no loop that threads share, and no checks unless fails_by_example
//   L8 memory of which the steps of a loop have their own lies in the frame, is used within such
//      loops alone, and the steps are apart, not lanes, and hold no loop that threads share
// The interpreter tests every offset besides.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>
#include <plait/rules/emit.h>
#include <plait/run/kernel.h>

#include <array>

namespace plait::codegen {

using loops::Place;
using loops::Range;
using loops::Tensor;
using loops::Tensors;
using loops::Value;
using loops::Values;

struct Memory {
  // counts: how many bodies of control flow have run for each example: see lane_work.h.
  enum class Space { operand, result, frame, counts } space = Space::frame;
  int index = 0;  // of the operand or the result
  DType dtype = DType::float32;
  std::int64_t size = 0;  // elements

  bool has_index() const { return space == Space::operand || space == Space::result; }
};

// A kernel that runs one equation, as it is called at every step.
struct Call {
  Jaxpr program;                 // the equation
  std::vector<Sizes64> strides;  // of the operands
  std::shared_ptr<const Kernel> kernel;
};

struct Statement;
using Block = std::vector<Statement>;

struct Statement {
  enum class Kind {
    compute,  // value = primitive(operands)
    load,     // value = place
    store,    // place = operands[0]
    copy,     // a block of elements, from source_place to place
    check,    // an error unless low <= operands[0] <= high
    repeat,   // blocks[0] for value = 0 .. steps - 1, with carries, or in any order
    combine,  // value = operands[0] combined with operands[1...] of blocks[0], for all counters;
              // and a value for each carry, for GPUs: see combine_turns.h
    loop,     // blocks[0] computes whether blocks[1] runs, again and again
    branch,   // blocks[operands[0]]; the carries are results
    call,     // a kernel: its operands and then its results begin at `places`. In programs for GPUs
              // `sort` alone, by threads together
  } kind = Kind::compute;
  Source source = {};
  // Why it is there, of a copy, or of a store that keeps what else would lie where it was.
  std::string reason = {};
  Value value = -1;
  Values operands = {};
  const Primitive* primitive = nullptr;
  Params params = {};
  Place place = {}, source_place = {};
  Sizes64 shape = {}, strides = {}, source_strides = {};  // of a copy
  // Of a check. Of a call: where the elements of its first operand are known to lie, if that is
  // more than one number.
  std::int64_t low = 0, high = 0;
  std::function<void(std::int64_t)> raise = {};
  // A number that a loop carries: its value in a step and, at last, after the loop; the first one,
  // and the next. For a branch: its result, and in `nexts` that of each alternative. For a
  // combination: `last` is `first` combined with the terms `next`; there is no value in a step.
  struct Carry {
    Value value, first, next, last;
    Values nexts = {};
  };
  std::vector<Carry> carries = {};
  // Pairs of memories that change places at the end of every step of a loop. Behind the loop each
  // has its own place again, with what it holds then.
  std::vector<std::array<int, 2>> exchanged = {};
  // By pair, the part of them that the loop uses, or none for all.
  struct Region {
    Place place;  // in either memory
    Sizes64 shape, strides;
  };
  std::vector<Region> regions = {};
  std::int64_t steps = 0;
  bool is_parallel = false;  // of repeat: no step reads what another one writes, and L6
  bool is_apart = false;     // of repeat: no step reads what another one writes
  // Of repeat: threads share the steps, and none takes fewer than these; 0 for one thread.
  std::int64_t grain = 0;
  // Of repeat: memories of which each step has its own, with nothing in it at first.
  std::vector<int> own = {};
  // Of a parallel loop, and of combine: from each of these places on, as many elements as it has
  // steps will be read soon: see ahead.cpp.
  std::vector<Place> soon = {};
  Value counter = -1;        // of combine
  bool is_in_order = false;  // else in eight interleaved parts: see Writer::combine
  std::vector<Block> blocks = {};
  std::shared_ptr<const Call> call = {};
  std::vector<Place> places = {};
};

struct LoopProgram {
  std::vector<Memory> memories;
  std::vector<DType> dtypes;                        // of every value
  std::vector<std::pair<Value, Literal>> literals;  // the values that are literals
  std::vector<std::optional<Range>> ranges = {};  // of values, where known; the last ones may lack
  Block body;
  // Whether examples run one after the other, so that what fails first is not what would fail first
  // if each step were that of all examples. The group is then run again, step by step.
  bool fails_by_example = false;

  std::optional<Range> range(Value value) const {
    const auto i = std::size_t(value);
    return i < ranges.size() ? ranges[i] : std::nullopt;
  }
  void know(Value value, Range range) {
    if (ranges.size() <= std::size_t(value)) ranges.resize(std::size_t(value) + 1);
    ranges[std::size_t(value)] = range;
  }
};

// Raises the error of a check that has failed, with its line.
[[noreturn]] inline void raise(const Statement& check, std::int64_t index) {
  try {
    check.raise(index);
  } catch (Error& error) {
    if (check.source) error.at(check.source);
    throw;
  }
  throw InternalError("a check of a loop program failed without an error");
}

// Whether the steps of a loop may be parallel, or those of a combination are what L6 says.
bool is_simple(const Statement& loop);
// An invariant that does not hold.
struct Broken {
  const Statement* statement;  // nullptr where a literal breaks it
  std::string what;            // "L1 is broken: v3 is defined twice"
};
std::optional<Broken> broken(const LoopProgram& program);
// Throws InternalError that cites the broken invariant and prints the program.
void check(const LoopProgram& program);
// sources: whether lines of users, and reasons behind this mark, follow as comments.
inline constexpr std::string_view reason_mark = "copied: ";
std::string print(const LoopProgram& program, ShowSources sources = ShowSources::no);

}  // namespace plait::codegen
