// Masks of matrices: the elements above or below a diagonal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/primitives.h>

namespace plait::matrices {

// A bool matrix: compares row + k with the column.
Array compare_places(Array (*compare)(Operand, Operand), Dim rows, Dim columns, int k);
// Matrices with zeros where keep is false.
Array keep_places(const Array& x, const Array& keep);

}  // namespace plait::matrices
