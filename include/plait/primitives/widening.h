// Where 32-bit numbers become 64-bit ones, mostly because of one strong operand that was not
// intended.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

namespace plait {

// A line that converts a narrower dtype to a wider one of its kind.
struct Widening {
  DType from = DType::float32, to = DType::float64;
  Source source;
  std::string to_string() const;  // "float32 becomes float64 at train.py:3 in f:  y = x * c"
  bool operator==(const Widening&) const = default;
};

// The conversions from float32, int32 or complex64 to twice their width in a program and its
// bodies, each line once, in order.
std::vector<Widening> widenings(const Jaxpr& jaxpr);

// "; float64 comes in at train.py:3 in f:  y = x * c" for an output whose dtype is wider than
// expected. The line is found going back from the output: the one where an operand of that dtype
// first meets others. Empty where it is not known, or is the current line, which the error names
// anyway.
std::string where_it_widens(const Jaxpr& jaxpr, const Atom& output, DType expected);

}  // namespace plait
