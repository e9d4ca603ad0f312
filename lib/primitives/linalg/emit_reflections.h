// Householder reflections H = I - tau v v^H in rules Emit, as Eigen makes them. Reflection k is
// stored in column k of a matrix whose columns lie side by side: its vector begins in row k, with
// 1, which is not stored.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "primitives/linalg/emit_matrices.h"

namespace plait {

// Makes reflection k, which leaves beta of its column.
void make_reflection(const MatrixIn& x, const loops::Index& k, std::int64_t rows,
                     const VectorIn& taus);
// Reflects the columns of a matrix from `first` on: the rows from k on.
void reflect(const MatrixIn& x, const loops::Index& k, written::Number tau, const MatrixIn& columns,
             std::int64_t rows, std::int64_t count, written::Number first);

}  // namespace plait
