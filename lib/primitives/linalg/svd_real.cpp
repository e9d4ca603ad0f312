// decompose of real matrices. See svd.h.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/linalg/svd_kernel.h"

namespace plait::matrices {

void decompose(const Matrix<double>& x, Vectors vectors, Decomposed<double>& result) {
  decompose_typed(x, vectors, result);
}

}  // namespace plait::matrices
