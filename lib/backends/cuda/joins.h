// Which groups of equations become one: those that are fewer kernels so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

namespace plait::cuda {

// Backend::joins for loop programs.
bool are_better_as_one(const Jaxpr& program, std::span<const int> uses, std::span<const int> group,
                       std::span<const int> more);

}  // namespace plait::cuda
