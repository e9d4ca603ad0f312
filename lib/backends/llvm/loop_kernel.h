// Kernels for whole loops.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

namespace plait::llvm {

// Whether an equation is a loop of which make_loop_kernel makes a kernel, or why not.
Support supports_loop(const Equation& equation);
// Whether it does the same for many examples.
bool has_examples(const Equation& loop);
// strides: of the inputs of the group, whose one equation is a loop.
std::unique_ptr<Kernel> make_loop_kernel(const Jaxpr& group, std::span<const Sizes64> strides);

}  // namespace plait::llvm
