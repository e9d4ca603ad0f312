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

Array fft(Operand a, const std::optional<Dim>& n = {}, int axis = -1,
          const std::optional<std::string>& norm = {});
Array ifft(Operand a, const std::optional<Dim>& n = {}, int axis = -1,
           const std::optional<std::string>& norm = {});
// Of a real signal: the first n // 2 + 1 numbers of its spectrum; the others are their conjugates.
Array rfft(Operand a, const std::optional<Dim>& n = {}, int axis = -1,
           const std::optional<std::string>& norm = {});
// The signal of n points of such a spectrum; without n, 2 (m - 1) points of m numbers.
Array irfft(Operand a, const std::optional<Dim>& n = {}, int axis = -1,
            const std::optional<std::string>& norm = {});
// The real spectrum of n numbers of a signal whose other half is conjugate, and its inverse.
Array hfft(Operand a, const std::optional<Dim>& n = {}, int axis = -1,
           const std::optional<std::string>& norm = {});
Array ihfft(Operand a, const std::optional<Dim>& n = {}, int axis = -1,
            const std::optional<std::string>& norm = {});

// The same over several axes: the last two, all, or the last ones when s says how many. The last of
// the axes is the one that is halved.
Array fft2(Operand a, const std::optional<Shape>& s = {}, const Axes& axes = {-2, -1},
           const std::optional<std::string>& norm = {});
Array ifft2(Operand a, const std::optional<Shape>& s = {}, const Axes& axes = {-2, -1},
            const std::optional<std::string>& norm = {});
Array rfft2(Operand a, const std::optional<Shape>& s = {}, const Axes& axes = {-2, -1},
            const std::optional<std::string>& norm = {});
Array irfft2(Operand a, const std::optional<Shape>& s = {}, const Axes& axes = {-2, -1},
             const std::optional<std::string>& norm = {});
Array fftn(Operand a, const std::optional<Shape>& s = {}, const Axes& axes = {},
           const std::optional<std::string>& norm = {});
Array ifftn(Operand a, const std::optional<Shape>& s = {}, const Axes& axes = {},
            const std::optional<std::string>& norm = {});
Array rfftn(Operand a, const std::optional<Shape>& s = {}, const Axes& axes = {},
            const std::optional<std::string>& norm = {});
Array irfftn(Operand a, const std::optional<Shape>& s = {}, const Axes& axes = {},
             const std::optional<std::string>& norm = {});

// The frequencies of a spectrum, in cycles per unit of the distance d of points.
Array fftfreq(Dim n, Operand d = 1.0, OptionalDType dtype = {});
Array rfftfreq(Dim n, Operand d = 1.0, OptionalDType dtype = {});
// The spectrum with frequency 0 in the middle, and back; over all axes by default.
Array fftshift(Operand x, const Axes& axes = {});
Array ifftshift(Operand x, const Axes& axes = {});

}  // namespace plait::numpy::fft
