// The part of a memory that belongs to each step of a loop: see belongs_to_step in overlap.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

class Part {
 public:
  Part(const LoopProgram& program, const Statement& loop, int memory, std::int64_t stride)
      : program_(program), loop_(loop), memory_(memory), stride_(stride) {}

  // Whether the steps use their own parts alone.
  bool is_all_that_steps_use() const;
  // Whether a block of elements, of which `axis` goes along the steps, has for each its own.
  bool holds_along(const Place& place, Sizes64 shape, Sizes64 strides, std::size_t axis) const;

 private:
  bool holds(const Place& place, const Sizes64& shape, const Sizes64& strides) const;

  const LoopProgram& program_;
  const Statement& loop_;
  const int memory_;
  const std::int64_t stride_;
};

// From the part of a step to that of the next one, by what the first access in the loop says.
std::optional<std::int64_t> stride_of_parts(const Statement& loop, int memory);

}  // namespace plait::codegen
