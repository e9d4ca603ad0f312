// Random programs of float64 arrays, with loops and branches in each other. They run in two ways:
// by plait's control flow, and by the `if` and `for` of C++ on known values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>

#include <plait/inspect/samples.h>
#include <plait/plait.h>

namespace plait::laws {

// What a step is: one operation, or control flow around steps of its own.
enum class Control {
  none,
  cond,
  switch_,
  while_loop,
  fori_loop,
  scan,
  map,
  associative_scan,
  jit,
  checkpoint,
  jvp
};

// A step computes one float64 array from earlier ones (inputs come first). Which operation it is
// follows from `choice` and the shapes it meets, so that a step means something wherever it stands.
struct Step {
  unsigned choice = 0;
  std::size_t first = 0, second = 0;
  Control control = Control::none;
  std::vector<std::vector<Step>> bodies =
      {};  // functions of arrays to one; without steps, to the last
};
using Steps = std::vector<Step>;

// How control flow runs: as equations that hold programs, or in C++ by the values that are known.
enum class Style { structured, plain };

// A function of some matrices "n 3" to one array, n = 4.
struct Program {
  std::size_t num_inputs = 1;
  Steps steps;
  bool any_size = false;  // without the operations that need integers for sizes
  Function function(Style style = Style::structured) const;
};
inline constexpr std::int64_t rows = 4, columns = 3;

Program random_program(std::mt19937& generator);
// The program with one step less, or with one that is no control flow any more.
std::vector<Program> smaller_programs(const Program& program);

Array total(const Array& x);  // of all elements
// Arrays of one shape along a new first axis, and an element along it; by equations.
Array stacked(const Arrays& arrays);
Array row_of(const Array& x, std::int64_t index, int axis = 0);

// An operation that programs use when choice is `mutant_choice`: for a test of shrinking.
inline constexpr unsigned mutant_choice = 1000;
void set_mutant(const Primitive* primitive);

}  // namespace plait::laws
