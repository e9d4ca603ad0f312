// eigh in the form that plait.lax.linalg and plait.numpy.linalg use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/linalg.h>

namespace plait {

// Eigenvectors, if requested, then eigenvalues, of x or of (x + x^H) / 2.
Arrays eigh_of(const Array& x, bool lower, bool symmetrize, bool vectors);

}  // namespace plait
