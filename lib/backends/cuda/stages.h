// A loop program as kernels that a GPU runs one after the other: stages. A stage has a grid of
// steps that run in any order, and what each of them does; one that has no grid is run once.
//
//   v4 = combine add of v0 in 0..64        stage  v0 in 0..64: v3 = combine ..., store m2[v0] = v3
//     v3 = combine add of v1 in 0..1024    stage  v4 = combine add of v0 in 0..64: load m2[v0],
//     -> v3                                       store m3[0] = v4
//   parallel for v5 in 0..65536            stage  v5 in 0..65536: v4 = load m3[0], ...
//     ...
//
// Where a grid would be too small, loops in it and long combinations become grids of their own.
// Numbers that a later stage uses are computed there again, or wait in memory.
//
// Where the steps of a grid go through long rows several times, a block runs each, and keeps rows
// in its memory.
//
// A stage without a grid is one block, in which the steps of a loop in order follow each other.
// Where that leaves too much to a block, the stage is cooperative: as many blocks as there is room
// for run it together, and meet where one of them needs what another has done.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::cuda {

// Elements of a memory that a step of a grid uses: so many from low on, behind where the counters
// of the grid have led. They lie in the memory of the block that runs the step. Its own nobody else
// sees; others, which are read several times, are brought there first.
struct Row {
  int memory;
  std::vector<codegen::Place::Term> terms;  // of the grid's counters
  std::int64_t low, size;
  bool is_own;
};

struct Stage {
  struct Axis {
    codegen::Value counter;
    std::int64_t steps;
  };
  std::vector<Axis> grid;
  codegen::Block body;
  std::vector<Row> rows = {};
  bool is_cooperative = false;

  std::int64_t steps() const;
};

// What statements offer to threads that run them together.
struct Width {
  std::int64_t steps =
      1;                 // the most steps in any order of loops in each other, and of combinations
  bool is_deep = false;  // a combination of combinations
};
Width width_of(const codegen::Block& block);

// One block takes longer over so many steps than blocks that meet.
inline constexpr std::int64_t fewest_of_cooperative = 1 << 13;

struct Staged {
  codegen::LoopProgram program;  // with more memory; its body is that of the stages
  std::vector<Stage> stages;
  std::int64_t fewest_of_cooperative = cuda::fewest_of_cooperative;
};
Staged stages_of(codegen::LoopProgram program,
                 std::int64_t fewest_of_cooperative = cuda::fewest_of_cooperative);

// Whether the blocks of a cooperative stage run the statements in it together: not so where they
// share its steps.
bool is_run_together(const codegen::Statement& s, std::int64_t fewest_of_cooperative);

}  // namespace plait::cuda
