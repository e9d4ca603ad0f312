// Groups as loop programs that run without generated code. See interpreter.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

namespace plait {

// A group that has a loop program. strides: of its inputs, in elements, as they will lie in memory;
// without them, they lie dense.
std::unique_ptr<Kernel> make_interpreted(const Jaxpr& group, std::span<const Sizes64> strides);
std::unique_ptr<Kernel> make_interpreted(const Jaxpr& group);

}  // namespace plait
