// Products of vectors and matrices: each sum term after term, by one fma each, wherever it runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/small_products.h"

namespace plait {

// out [batch, n], dense, = lhs [batch, k] @ rhs [batch, k, n]; lhs has rows of one element each.
// Shared by threads, and as fast as the matrix comes from memory.
void multiply_vector(const MatrixStack<float>& lhs, const MatrixStack<float>& rhs,
                     std::int64_t batch, std::int64_t k, std::int64_t n, float* out);
void multiply_vector(const MatrixStack<double>& lhs, const MatrixStack<double>& rhs,
                     std::int64_t batch, std::int64_t k, std::int64_t n, double* out);

}  // namespace plait
