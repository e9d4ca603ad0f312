// Products of small matrices: each sum term by term, by one fma each, as in generated code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace plait {

// A stack of matrices in memory; strides in elements.
template <class T>
struct MatrixStack {
  const T* data;
  std::int64_t batch_stride, row_stride, column_stride;
};

// out [batch, m, n], dense, = lhs [batch, m, k] @ rhs [batch, k, n], where k <= 32. Runs on all
// threads.
void multiply_small(const MatrixStack<float>& lhs, const MatrixStack<float>& rhs,
                    std::int64_t batch, std::int64_t m, std::int64_t k, std::int64_t n, float* out);
void multiply_small(const MatrixStack<double>& lhs, const MatrixStack<double>& rhs,
                    std::int64_t batch, std::int64_t m, std::int64_t k, std::int64_t n,
                    double* out);

}  // namespace plait
