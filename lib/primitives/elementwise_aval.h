// The type of what an elementwise primitive gives, for those that ask more of their operands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/families.h>

namespace plait {

// Errors for operands of other dtypes than these, of several dtypes, and of shapes that differ.
Aval elementwise_aval(std::string_view name, std::span<const Aval> inputs, DTypes types,
                      ResultType result);

}  // namespace plait
