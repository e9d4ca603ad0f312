// Cholesky factors and triangular systems of stacks of small real matrices, one in each lane.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>

namespace plait {

// Sides of matrices, and numbers of right-hand sides, that these take. How many matrices there are
// plays no part, so that one has the bits that it has among others.
inline constexpr std::int64_t largest_small_matrix = 16;

// The lower triangular factor of each matrix; NaN where one is not positive definite.
template <class T>
void small_cholesky(const View& matrices, const View& out);

// Where element (i, j) of lower triangular L in L X = B lies, and what of the result: see
// solve_kernel in cholesky.cpp.
struct SmallSystem {
  bool left = true;       // else unknowns are the columns of b
  bool turned = false;    // L is the transpose of a
  bool reversed = false;  // the unknowns count from the back
  bool unit = false;      // ones on the diagonal, which is not read
};
template <class T>
void small_triangular_solve(const View& a, const View& b, const View& out,
                            const SmallSystem& system);

}  // namespace plait
