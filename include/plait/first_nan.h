// first_nan: where a program makes its first NaN.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

namespace plait {

// Where a value first became NaN.
struct FirstNan {
  std::string equation;  // as a program prints it, with its inputs' types
  Source source;
  // What holds the equation, outermost first: a call; a loop, and in which step; a cond, and which
  // branch; vmap or mask, and which example.
  struct Holder {
    std::string name, where = {};
  };
  std::vector<Holder> path;
  Sizes64 element;  // the first such element of the output
  Aval output;
  std::string to_string() const;
};
// Runs the program equation by equation, on the kernels that it is compiled to, up to the first
// equation that makes a NaN of inputs that have none, in the bodies of loops, branches and calls
// too. Nothing when there is none.
std::optional<FirstNan> first_nan(const Jaxpr& jaxpr, std::span<const Array> inputs);

}  // namespace plait
