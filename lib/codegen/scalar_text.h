// Numbers and elementwise primitives as C++: what the texts of loop programs are made of, whichever
// machine they are for. Functions are those of backends/cuda/device/plait/functions.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

#include <string>

namespace plait::codegen {

// The name of the type of an element, in namespaces std and plait.
std::string type_text(DType dtype);
// A number with the type that the text has for it, so that functions find theirs.
std::string literal_text(const Literal& literal);
std::string integer_text(std::int64_t value);  // of a long
// What signed integers do whose sum is too large, where the text is compiled.
enum class Overflow : std::uint8_t { wraps, undefined };
// An elementwise primitive of numbers with these dtypes and names. InternalError for one that has
// neither a rule Spelling nor a function.
std::string scalar_text(const Primitive& primitive, const Params& params,
                        const std::vector<DType>& dtypes, const std::vector<std::string>& names,
                        Overflow overflow = Overflow::wraps);

}  // namespace plait::codegen
