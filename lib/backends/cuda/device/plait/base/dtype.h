// The element types of arrays, for kernels: those of include/plait/base/dtype.h, whose names, sizes
// and bits they have, with conversions that a kernel has inline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <complex>
#include <cstdint>
#include <type_traits>

#ifndef __CUDACC_RTC__
#include <immintrin.h>
#endif

namespace plait {

struct float16 {
  std::uint16_t bits;
  float16() = default;
#ifdef __CUDACC_RTC__
  explicit float16(float value) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value)); }
  explicit operator float() const {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
#else
  explicit float16(float value) : bits(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT)) {}
  explicit operator float() const { return _cvtsh_ss(bits); }
#endif
};

struct bfloat16 {
  std::uint16_t bits;
  bfloat16() = default;
  explicit bfloat16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;  // which rounding might make infinite
    bits = std::uint16_t(is_nan ? word >> 16 | 0x40u
                                : (word + 0x7fffu + (word >> 16 & 1u)) >> 16);  // half to even
  }
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t(bits) << 16); }
};

using complex64 = std::complex<float>;
using complex128 = std::complex<double>;
template <class T>
inline constexpr bool is_complex_v = false;
template <class T>
inline constexpr bool is_complex_v<std::complex<T>> = true;

}  // namespace plait
