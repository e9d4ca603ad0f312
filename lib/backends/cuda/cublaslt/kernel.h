// Kernels of products, with what follows them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

#include "backends/cuda/cublaslt/product.h"

namespace plait::cuda {

// The problem of a product whose operands lie dense; copies are read where their axes do not merge.
// Absent where cuBLASLt has no such types.
std::optional<Problem> problem_of(const Params& params, const Aval& lhs, const Aval& rhs,
                                  DType result);

// A product and what epilogue_of finds behind it; what cuBLASLt does not take of that runs as
// generated loops behind it.
std::unique_ptr<Kernel> make_product_kernel(const Jaxpr& group, const Target& target);

}  // namespace plait::cuda
