// plait::numpy::fft: discrete Fourier transforms under NumPy's names.
//
// n is the number of points along an axis, to which the array is cut or padded with zeros; -1, or
// none, is its size. norm says where the factor is: "backward" in the inverse (1 / n), "forward" in
// the transform, "ortho" in both (1 / sqrt(n)). Integers and 16-bit floats are float32; results are
// complex64 or complex128, and real where a signal is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/numpy.h>

namespace plait::numpy::fft {

using Points = std::optional<Dim>;
using Norm = std::optional<std::string>;

Array fft(Operand a, const Points& n = {}, int axis = -1, const Norm& norm = {});
Array ifft(Operand a, const Points& n = {}, int axis = -1, const Norm& norm = {});
// Of a real signal: the first n // 2 + 1 numbers of its spectrum; the others are their conjugates.
Array rfft(Operand a, const Points& n = {}, int axis = -1, const Norm& norm = {});
// The signal of n points of such a spectrum; without n, 2 (m - 1) points of m numbers.
Array irfft(Operand a, const Points& n = {}, int axis = -1, const Norm& norm = {});
// The real spectrum of n numbers of a signal whose other half is conjugate, and its inverse.
Array hfft(Operand a, const Points& n = {}, int axis = -1, const Norm& norm = {});
Array ihfft(Operand a, const Points& n = {}, int axis = -1, const Norm& norm = {});

// The same over several axes: the last two, all, or the last ones when s says how many. The last of
// the axes is the one that is halved.
using Points2 = std::optional<Shape>;
Array fft2(Operand a, const Points2& s = {}, const Axes& axes = {-2, -1}, const Norm& norm = {});
Array ifft2(Operand a, const Points2& s = {}, const Axes& axes = {-2, -1}, const Norm& norm = {});
Array rfft2(Operand a, const Points2& s = {}, const Axes& axes = {-2, -1}, const Norm& norm = {});
Array irfft2(Operand a, const Points2& s = {}, const Axes& axes = {-2, -1}, const Norm& norm = {});
Array fftn(Operand a, const Points2& s = {}, const Axes& axes = {}, const Norm& norm = {});
Array ifftn(Operand a, const Points2& s = {}, const Axes& axes = {}, const Norm& norm = {});
Array rfftn(Operand a, const Points2& s = {}, const Axes& axes = {}, const Norm& norm = {});
Array irfftn(Operand a, const Points2& s = {}, const Axes& axes = {}, const Norm& norm = {});

// The frequencies of a spectrum, in cycles per unit of the distance d of points.
Array fftfreq(Dim n, Operand d = 1.0, OptionalDType dtype = {});
Array rfftfreq(Dim n, Operand d = 1.0, OptionalDType dtype = {});
// The spectrum with frequency 0 in the middle, and back; over all axes by default.
Array fftshift(Operand x, const Axes& axes = {});
Array ifftshift(Operand x, const Axes& axes = {});

}  // namespace plait::numpy::fft
