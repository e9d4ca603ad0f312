// Complex extensions of real functions, with NumPy's branches.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/functions.h"
#include "functions/one_program.h"

namespace plait::functions {

Array complex_expm1(const Array& z);
Array complex_log1p(const Array& z);
Array complex_arcsin(const Array& z);
Array complex_arccos(const Array& z);
Array complex_arctan(const Array& z);
Array complex_arcsinh(const Array& z);
Array complex_arccosh(const Array& z);
Array complex_arctanh(const Array& z);
Array complex_sinh(const Array& z);
Array complex_cosh(const Array& z);
Array complex_tanh(const Array& z);
Array complex_tan(const Array& z);
// Complex numbers are in the order of their real parts, then of their imaginary ones; NaN wins.
Array complex_extreme(const Array& x, const Array& y, bool largest);
Array complex_extreme_over(const Array& x, std::span<const int> axes, bool largest);
// log(exp x + exp y), whose imaginary part is in [-pi, pi].
Array complex_logaddexp(const Array& x, const Array& y);

// One of these as one program. The name is its own.
template <Array (*of)(const Array&)>
Array program_of(std::string_view name, const Array& z) {
  return in_one_program(name, std::span<const Array>(&z, 1),
                        [](std::span<const Array> x) { return Arrays{of(x[0])}; });
}

}  // namespace plait::functions
