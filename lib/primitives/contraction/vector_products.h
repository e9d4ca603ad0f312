// Products of vectors and matrices: each sum in eight interleaved parts, by one fma a term, on
// every backend. See NOTE: [reduction order].
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "primitives/contraction/small_products.h"

namespace plait {

// out [batch, n], dense, = lhs [batch, k] @ rhs [batch, k, n]. Runs on all
// threads, at the speed of memory.
void multiply_vector(const MatrixStack<float>& lhs, const MatrixStack<float>& rhs,
                     std::int64_t batch, std::int64_t k, std::int64_t n, float* out);
void multiply_vector(const MatrixStack<double>& lhs, const MatrixStack<double>& rhs,
                     std::int64_t batch, std::int64_t k, std::int64_t n, double* out);

}  // namespace plait
