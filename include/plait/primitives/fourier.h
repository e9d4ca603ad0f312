// Discrete Fourier transforms: the primitive, and lax::fft under JAX's name. Not part of
// primitives.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/primitives.h>

namespace plait {

extern const Primitive fft_p;

namespace lax {

// The transform over the last axes, as many as there are lengths (1 to 3 in JAX, any number here).
// fft_type is "fft" (complex to complex: X[k] = sum_j x[j] exp(-2 pi i j k / n)), "ifft" (its
// inverse, with the factor 1 / n), "rfft" (of real numbers: the first n // 2 + 1 of the last axis)
// or "irfft" (the inverse of rfft; the last length is that of the result). Letters may be capitals.
// float32 and float64, complex64 and complex128.
Array fft(Operand x, const std::string& fft_type, const Shape& fft_lengths);

// The same over one axis. length: n, the number of points of the signal, real or complex.
Array fft_along(Operand x, const std::string& fft_type, int axis, Dim length);

}  // namespace lax
}  // namespace plait
