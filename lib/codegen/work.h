// What statements take, roughly: for passes that choose, where a factor of two decides nothing.
// cost.h knows more and takes longer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

// Whether a primitive computes a function, which takes as long as many additions.
bool is_function(const Primitive& primitive);
// Roughly the instructions of a processor that an elementwise primitive becomes, and whether they
// are a handful that wait for little.
double instructions_of(const Primitive& primitive);
bool is_light(const Primitive& primitive);

class Work {
 public:
  explicit Work(const LoopProgram& program) : program_(program) {}

  // Nanoseconds of a statement outside of lanes, and of one step of a loop.
  double of(const Statement& s) const { return of(s, none); }
  double of_step(const Statement& loop) const {
    return of(loop.blocks[0], loop.is_parallel ? loop.value : none);
  }

 private:
  static constexpr Value none = -1;

  // lane: the counter of the loop whose steps are lanes of vectors, of which it is one step.
  double of(const Block& block, Value lane) const;
  double of(const Statement& s, Value lane) const;
  double of_access(const Place& place, Value lane) const;
  std::int64_t bytes_of(const Place& place) const {
    return size_of(program_.memories[std::size_t(place.memory)].dtype);
  }

  const LoopProgram& program_;
};

// Roughly the instructions of the code that a program becomes, with vectors of so many bytes, and
// whether a compiler takes much longer than a second for them.
double code_of(const LoopProgram& program, int vector_bytes);
bool is_long_code(const LoopProgram& program, int vector_bytes);

// How a program reads a memory; infinities where calls do.
struct Reads {
  double elements = 0;  // again and again
  double between = 1;   // the most that are read from one element to the next one beside it
  double jumping = 0;   // of the elements: those that combinations take in from far apart
};
std::vector<Reads> reads_of(const LoopProgram& program);  // by memory

}  // namespace plait::codegen
