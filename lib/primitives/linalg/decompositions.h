// What the decompositions of general matrices share: the rules that all of them have, and systems
// with the triangular factors of Schur's form, in which their derivatives are written.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/decompositions.h>

#include "primitives/linalg/matrices.h"

namespace plait::matrices {

// Batch, and what is the same for every decomposition: it runs in full precision, as a kernel of
// its own on the CPU, and stays where the program has it.
Family decomposition(const Primitive& primitive);

Array as_complex(const Array& x);  // of floats; complex numbers stay as they are
// Unit columns whose first element that is at least half as large as the largest is real and
// positive change by these tangents, but for multiples of each column: its multiple that keeps the
// column normalised.
Array normalised_tangent(const Array& columns, const Array& tangent);
// The column's own multiples in that: i times their imaginary parts, for columns that stay
// orthonormal.
Array phase_tangent(const Array& columns, const Array& tangent);
// The y of x y = b by the factors of x.
Array solved_by_lu(const Array& x, const Array& b);
// The x of a x + x b = c for general matrices of one complex dtype: by the Schur forms of a and b,
// which derivatives do not see.
Array solved_sylvester(const Array& a, const Array& b, const Array& c);

}  // namespace plait::matrices
