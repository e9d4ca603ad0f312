// A group's equations in runs that a processor can overlap with their neighbours.
//
// NOTE: [segments] A long chain of polynomials waits for itself: the next vector's instructions lie
// beyond what a processor looks ahead. So the chain is cut. Each segment runs over a block of
// vectors before the next one does, which leaves enough independent work in sight; what crosses a
// cut passes through a block in the first-level cache. Unrolling would do as well, and compile for
// as many times longer.
//
// What is a few instructions away from inputs, or from one value that crosses cuts anyway, crosses
// none: every segment that reads it computes it anew, and none does before it is read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

#include <span>
#include <vector>

namespace plait::llvm {

struct Segments {
  struct Slot {  // memory that crosses cuts: one block of elements
    DType dtype;
    int free_from;  // segment
  };
  std::vector<std::vector<int>> equations;  // by segment, which may be left without any
  std::vector<int> pass;                    // by segment
  std::vector<int> written;                 // by var: the segment that computes it, -1 for inputs
  // By var: the last segment that reads it and does not compute it itself, -1 for none.
  std::vector<int> last_read;
  std::vector<int> slot_of;  // by var: where it crosses cuts, or -1
  std::vector<Slot> slots;
  std::int64_t bytes = 0;  // of all slots, for one element
  int size() const { return int(equations.size()); }
  // Where a slot of so many elements begins, after the earlier ones; of slots.size(): the end.
  std::int64_t offset_of(int slot, std::int64_t elements) const;
  // By var, whether a segment computes it.
  std::vector<bool> computed_by(int segment, const JaxprData& group) const;
};

// Roughly the instructions that an equation becomes.
double weight_of(const Equation& equation);
// Of the equations in this order; pass is by equation, and a segment lies in one pass.
Segments make_segments(const JaxprData& group, std::span<const int> order,
                       std::span<const int> pass);

}  // namespace plait::llvm
