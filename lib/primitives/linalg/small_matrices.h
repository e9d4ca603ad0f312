// Factors and triangular systems of stacks of small real matrices, one in each lane.
// small_factors.h states the largest sizes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>

namespace plait {

// The lower triangular factor of each matrix; NaN where one is not positive definite.
template <class T>
void small_cholesky(const View& matrices, const View& out);

// P A = L U, the row exchanges, and their permutation: dense results.
template <class T>
void small_lu(const View& matrices, const View& out, const View& pivots, const View& order);

// The determinant of each matrix: a dense result.
template <class T>
void small_det(const View& matrices, const View& out);

// The position of element (i, j) of lower triangular L in L X = B, and of the result: see
// solve_kernel in cholesky.cpp.
struct SmallSystem {
  bool left = true;       // false: the unknowns are the columns of b
  bool turned = false;    // L is the transpose of a
  bool reversed = false;  // the unknowns count from the back
  bool unit = false;      // ones on the diagonal, which is not read
};
template <class T>
void small_triangular_solve(const View& a, const View& b, const View& out,
                            const SmallSystem& system);

}  // namespace plait
