// What a block keeps in its memory while the steps of a loop in order follow each other: the memory
// that they read and write again and again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stages.h"

namespace plait::cuda {

struct Kept {
  Row row;
  bool is_written;  // and goes back to the device's memory behind the step, unless it is the step's
};
// Of a stage whose steps blocks run: rows of at most so many bytes.
std::vector<Kept> kept_of(const Staged& staged, const Stage& stage, std::int64_t most_bytes);

// Where rows lie in the memory of a block, one behind the other: multiples of 16 bytes.
std::int64_t room_of(const codegen::LoopProgram& program, const Row& row);

}  // namespace plait::cuda
