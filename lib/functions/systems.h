// Systems of equations: shared by plait.numpy.linalg and plait.scipy.linalg.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

namespace plait::systems {

// Square matrices and matching right-hand sides, in one inexact dtype.
std::pair<Array, Array> promoted_system(std::string_view function, const Array& a, const Array& b);

// Applies solver, which takes matrices a and right-hand sides b with equal batch axes, to operands
// whose batches broadcast and of which b may be a vector.
using ColumnSolver = std::function<Array(const Array& a, const Array& b)>;
Array for_columns(std::string_view function, const Array& a, const Array& b,
                  const ColumnSolver& solver);
Dim size_behind_first(const Shape& shape);

// The x of op(a) x = b by the factors of a.
Array solve_factored(const Array& lu, const Array& permutation, const Array& b, bool transpose,
                     bool conjugate);

}  // namespace plait::systems
