// Random programs under random stacks of transforms, and the smallest one that still fails.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "samples.h"

namespace plait::laws {

// A step computes one float64 array from earlier ones (inputs come first). Which operation it is
// follows from `choice` and the shapes it meets, so that a step means something wherever it stands.
struct Step {
  unsigned choice = 0;
  std::size_t first = 0, second = 0;
};
// A function of some matrices "n 3" to one array, n = 4.
struct Program {
  std::size_t num_inputs = 1;
  std::vector<Step> steps;
  bool any_size = false;  // without the operations that need integers for sizes
  Function function() const;
};

// Given fewer of them, the same Program with an outermost transform last.
enum class Layer { jvp, grad, vmap, jit, checkpoint, mask };
struct Composition {
  Program program;
  std::vector<Layer> layers;  // innermost first; mask once at most
  std::string to_string() const;
};

Composition random_composition(unsigned seed);
// What the transforms give, against loops, differences, other modes of differentiation, and no jit.
std::optional<std::string> disagreement(const Composition& composition);
// The same failure with as few steps and layers as dropping them one by one reaches.
Composition shrink(const Composition& composition);

// An operation that programs use when choice is `mutant_choice`: for a test of shrinking.
inline constexpr unsigned mutant_choice = 1000;
void set_mutant(const Primitive* primitive);

}  // namespace plait::laws
