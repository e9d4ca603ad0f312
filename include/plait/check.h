// check: conditions on values that a program tests while it runs, and what finds errors in
// functions: the first NaN, and wrong derivatives.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ops.h>

namespace plait {

extern const Primitive check_p;

// A ValueError with this message, when the program runs, unless pred, a bool array, is true
// everywhere. Each "{}" in the message stands for one of the values, and values that are left
// follow it; those of the shape of pred are shown at the first element that fails. Under vmap the
// error names the example; under mask padding is not checked.
void check(Operand pred, const std::string& message, std::span<const Array> values = {});
void check(Operand pred, const std::string& message, std::initializer_list<Array> values);

// Where a value first became NaN (or, of floats, infinite where that is asked for).
struct FirstNan {
  std::string equation;  // as a program prints it, with its inputs' types
  Source source;
  std::vector<std::string> path;  // names of the calls that hold the equation, outermost first
  Sizes64 element;                // the first such element of the output
  Aval output;
  std::string to_string() const;
};
// Runs the program equation by equation, on the kernels that it is compiled to, up to the first
// equation that makes a NaN of inputs that have none. Nothing when there is none.
std::optional<FirstNan> first_nan(const Jaxpr& jaxpr, std::span<const Array> inputs);

}  // namespace plait
