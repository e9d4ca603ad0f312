// Arguments of Fourier transforms, for numpy.fft and scipy.fft.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/numpy_fft.h>

namespace plait::fourier_arguments {

using Norm = std::optional<std::string>;
using Points = std::optional<Dim>;
using Points2 = std::optional<Shape>;

// Where the factor is.
enum class Factor : std::uint8_t { backward, ortho, forward };
Factor factor_of(const char* function, const Norm& norm);
Factor opposite(Factor factor);

// None and -1 are the size of the axis.
inline bool is_given(const Points& n) { return n && !(*n == Dim(-1)); }
// Cut, or padded with zeros.
Array fitted(const Array& x, int axis, Dim size);
// The axes, and the points of each.
std::vector<std::pair<int, Points>> axes_of(const char* function, const Array& a, const Points2& s,
                                            const Axes& axes);

}  // namespace plait::fourier_arguments
