// What a machine does in how much time, as far as the cost of loop programs depends on it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace plait::codegen {

// One thread of a machine: times in nanoseconds. The defaults are those of a usual server, and
// serve where nothing is measured.
struct Machine {
  // Throughput: of an operation on numbers, and on registers of vectors, where none waits.
  double operation = 0.08, vector = 0.15;
  double division = 1.5, vector_division = 3;
  double function = 8;  // an exponential of a register of vectors
  // Latency: from the operands of an operation to its result.
  double integer = 0.3, addition = 1, multiply_add = 1.2, divided = 4, exponential = 20;
  double forwarding = 1.5;   // of a load of what was stored just before
  double misprediction = 5;  // of a branch
  double call = 80;          // of a kernel, until it begins to work
  int vector_bytes = 32;
  // Caches, and memory behind them: how much each holds, bytes a nanosecond that are read from it
  // one after the other and that are written, and the latency of a load at an address that nobody
  // foresaw.
  struct Level {
    double bytes, read, written, latency;
  };
  std::array<Level, 4> levels{
      {{32e3, 100, 50, 1.5}, {1e6, 40, 20, 5}, {24e6, 20, 10, 20}, {1e18, 12, 6, 100}}};
};

// This machine, measured once in a process, in some 30 ms, at the first call: never for a call of
// a user's function. vector_bytes: of the registers that code is generated for.
Machine measured_machine(int vector_bytes);

}  // namespace plait::codegen
