// Whether an argument may be given to a program of named sizes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/aval.h>

namespace plait {

// Whether a formal argument takes values of this type: the same but for sizes that have names,
// which take any. Whether those agree with each other is for solve_sizes to say.
bool fits(const Aval& formal, const Aval& actual);

}  // namespace plait
