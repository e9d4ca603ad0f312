// Reductions in registers, in the order of lib/primitives/reduction/reduce.cpp: see NOTE:
// [reduction order].
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "primitives.h"

namespace plait::llvm {

// One reduction of a row: eight accumulators for each block of 1024 elements.
class Reduction {
 public:
  static constexpr int width = 8;
  static constexpr std::int64_t block = 1024;

  Reduction(std::string kind, DType dtype) : kind_(std::move(kind)), dtype_(dtype) {}
  Value start() const;  // the accumulators of an empty block
  // Takes in the first count lanes of a vector whose first one is at a multiple of `width`.
  Value take(Value accumulators, const Register& value, int count) const;
  Value finish(Value accumulators) const;  // one number
  // Of the blocks' numbers, by halves.
  Value combine_pairwise(std::span<const Value> numbers) const;
  Register result(Value number) const;  // in every lane
  Value combine(Value a, Value b) const;
  Value identity(int count) const;  // lanes

 private:
  std::string kind_;
  DType dtype_;
};

}  // namespace plait::llvm
