// plait::numpy::linalg: eigenvalues and eigenvectors of general matrices. Complex, whatever the
// dtype of the matrices: lax::linalg::eig.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/numpy_linalg.h>

namespace plait::numpy::linalg {

// Eigenvalues, in ascending order of their real parts, then of their imaginary parts, and
// eigenvectors as columns.
std::pair<Array, Array> eig(Operand a);
Array eigvals(Operand a);

}  // namespace plait::numpy::linalg
