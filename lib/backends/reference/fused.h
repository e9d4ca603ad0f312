// Runs of elementwise equations as one loop. See fused.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

namespace plait::reference {

// A group of equations with Pointwise rules, whose results all have one shape.
std::unique_ptr<Kernel> compile_fused(const Jaxpr& group);
// The most equations in one group: more would make the blocks of all values exceed the caches.
inline constexpr std::size_t largest_group = 192;

}  // namespace plait::reference
