// Kernels of groups with reductions of rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

namespace plait::llvm {

// strides: of the group's inputs, in elements, as they will lie in memory.
std::unique_ptr<Kernel> make_row_kernel(const Jaxpr& group, std::span<const Sizes64> strides);

}  // namespace plait::llvm
