// Small arrays in registers, one for each element, and the equations on them. A register holds a
// value for each lane: the examples of a loop that runs them side by side, or one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "primitives.h"

namespace plait::llvm {

class LoopMemory;

struct Small {
  DType dtype = DType::float32;
  Sizes64 shape;                   // whole, with the axis of examples
  int axis = -1;                   // which counts examples; -1: the same for all
  std::vector<Register> elements;  // row-major, of one example

  const LoopMemory* memory = nullptr;  // where it lies instead, when it is larger

  Small() = default;
  Small(const Aval& aval, int axis);
  const Register& at(const Sizes64& index) const { return elements[std::size_t(place(index))]; }
  Register& at(const Sizes64& index) { return elements[std::size_t(place(index))]; }

 private:
  std::int64_t place(const Sizes64& index) const;
};

// Elements of one example.
std::int64_t example_size(const Aval& aval, int axis);
// Calls f with the index of every element of one example, whose place among examples is 0.
template <class F>
void for_each_index(const Sizes64& shape, int axis, const F& f) {
  Sizes64 index(shape.size(), 0);
  const int rank = int(shape.size());
  while (true) {
    f(std::as_const(index));
    int i = rank - 1;
    for (; i >= 0; --i) {
      if (i == axis) continue;
      if (++index[i] < shape[i]) break;
      index[i] = 0;
    }
    if (i < 0) return;
  }
}

// Why an equation has no form here; empty where it has. Sizes of values are the caller's concern.
std::string small_refusal(const Equation& equation, std::span<const Aval> inputs,
                          std::span<const Aval> outputs, std::span<const int> axes);
// Roughly the instructions that an equation becomes, where results have these axes.
double small_weight(const Equation& equation, std::span<const Aval> inputs,
                    std::span<const Aval> outputs, std::span<const int> axes,
                    std::span<const int> output_axes);
// What equations know of the function around them.
struct Surroundings {
  Value first_example;  // the number of the example in the first lane
  Value failed;         // the address of an int64: see small_windows.h
};
std::vector<Small> lower_small(const Equation& equation, std::span<const Small* const> inputs,
                               std::span<const Aval> outputs, std::span<const int> output_axes,
                               const Surroundings& around);

}  // namespace plait::llvm
