// Kernels: a group of equations as one generated loop nest.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

namespace plait::llvm {

// Lanes for the narrowest type that is computed with: 4 bytes when there is one.
int lanes_for(const JaxprData& group);
// What decides the code of a kernel, beside its kind: the text that make_code wants.
std::string describe(const Jaxpr& group, std::span<const Sizes64> strides);
// strides: of the group's inputs, in elements, as they will lie in memory.
std::unique_ptr<Kernel> make_kernel(const Jaxpr& group, std::span<const Sizes64> strides);

}  // namespace plait::llvm
