// Random programs under random stacks of transforms, and the smallest one that still fails.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "programs.h"

namespace plait::laws {

// Given fewer of them, the same Program with an outermost transform last.
enum class Layer { jvp, grad, vmap, jit, checkpoint, mask };
struct Composition {
  Program program;
  std::vector<Layer> layers;  // innermost first; mask once at most
  unsigned unmapped = 0;      // which inputs vmap does not map, and along which axes the others
  std::string to_string() const;
};

Composition random_composition(unsigned seed);
// The function that the transforms make, with the types of its inputs.
struct Transformed {
  Function function;
  std::vector<Aval> avals;
};
Transformed transformed(const Composition& composition);
// What the transforms give, against loops, differences, other modes of differentiation, and no jit.
std::optional<std::string> disagreement(const Composition& composition);
// The same failure with as few steps and layers as dropping them one by one reaches.
Composition shrink(const Composition& composition);

}  // namespace plait::laws
