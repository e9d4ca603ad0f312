// first_nan: where a program makes its first NaN.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

namespace plait {

// Where a value first became NaN.
struct FirstNan {
  std::string equation;  // as a program prints it, with its inputs' types
  Source source;
  // The enclosing equations, outermost first: a call; a loop, and the step; a cond, and the branch;
  // vmap or mask, and the example.
  struct Holder {
    std::string name, where = {};
  };
  std::vector<Holder> path;
  Sizes64 element;  // the first such element of the output
  Aval output;
  std::string to_string() const;
};
// Runs the program equation by equation, on the kernels that it compiles to, up to the first
// equation that makes a NaN from inputs without one. It goes into the bodies of loops, branches and
// calls. Nullopt when no equation does.
std::optional<FirstNan> first_nan(const Jaxpr& jaxpr, std::span<const Array> inputs);

}  // namespace plait
