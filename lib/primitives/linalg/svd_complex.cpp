// decompose of complex matrices. See svd.h.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/linalg/svd_kernel.h"

namespace plait::matrices {

void decompose(const Matrix<complex128>& x, Vectors vectors, Decomposed<complex128>& result) {
  decompose_typed(x, vectors, result);
}

}  // namespace plait::matrices
