// plait.numpy.linalg: eigenvalues of general matrices.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/numpy_eig.h>
#include <plait/primitives/decompositions.h>

#include "functions/functions.h"

namespace plait {
namespace numpy::linalg {

std::pair<Array, Array> eig(Operand a) {
  const Arrays results = lax::linalg::eig(functions::to_inexact(a), false, true);
  return {results[0], results[1]};
}
Array eigvals(Operand a) { return lax::linalg::eig(functions::to_inexact(a), false, false)[0]; }

namespace {

[[maybe_unused]] const FunctionInfo* const eig_functions[] = {
    function(
        "numpy.linalg", "eig(a)",
        "Eigenvalues of square matrices, of shape (..., n), and eigenvectors as columns, both "
        "complex. Eigenvalues are in ascending order of their real parts, then of their "
        "imaginary parts. Vectors have length 1, and their first element that is at least half "
        "as large as the largest is real and positive. In derivatives of eigenvectors, equal "
        "eigenvalues drop their term.",
        &eig),
    function("numpy.linalg", "eigvals(a)",
             "Eigenvalues of square matrices, complex, in the order of eig.", &eigvals),
};

}  // namespace
}  // namespace numpy::linalg
}  // namespace plait
