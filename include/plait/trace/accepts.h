// Whether an argument matches an input of a program with named sizes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/aval.h>

namespace plait {

// Whether an input of type formal accepts a value of this type: they are the same except for named
// sizes, which accept any. Whether sizes agree with each other is for solve_sizes to check.
bool accepts(const Aval& formal, const Aval& actual);

}  // namespace plait
