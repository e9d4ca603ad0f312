// Products of matrices of complex numbers: each sum in the order of its terms.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dtype.h>

#include "primitives/contraction/small_products.h"

namespace plait {

// out [batch, m, n], dense, = lhs [batch, m, k] @ rhs [batch, k, n]. Runs on all threads.
void multiply_complex(const MatrixStack<complex64>& lhs, const MatrixStack<complex64>& rhs,
                      std::int64_t batch, std::int64_t m, std::int64_t k, std::int64_t n,
                      complex64* out);
void multiply_complex(const MatrixStack<complex128>& lhs, const MatrixStack<complex128>& rhs,
                      std::int64_t batch, std::int64_t m, std::int64_t k, std::int64_t n,
                      complex128* out);

}  // namespace plait
