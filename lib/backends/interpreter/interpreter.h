// Groups as loop programs that run without generated code. See interpreter.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

namespace plait {

// A group that has a loop program. strides: of its inputs, in elements, as they will lie in memory.
std::unique_ptr<Kernel> make_interpreted(const Jaxpr& group, std::span<const Sizes64> strides);

}  // namespace plait
