// Solving systems of equations: what plait.numpy.linalg and plait.scipy.linalg share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

namespace plait::systems {

// Square matrices and right-hand sides that fit them, in one inexact dtype.
std::pair<Array, Array> promoted_system(std::string_view function, const Array& a, const Array& b);

// solver on matrices a and right-hand sides b, which have the same batch axes, for operands of
// which b may be a vector, and whose batches broadcast.
using ColumnSolver = std::function<Array(const Array& a, const Array& b)>;
Array for_columns(std::string_view function, const Array& a, const Array& b,
                  const ColumnSolver& solver);
Dim size_behind_first(const Shape& shape);

// The x of op(a) x = b by the factors of a.
Array solve_factored(const Array& lu, const Array& permutation, const Array& b, bool transpose,
                     bool conjugate);

}  // namespace plait::systems
