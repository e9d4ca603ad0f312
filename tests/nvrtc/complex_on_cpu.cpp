// The complex functions of kernels (lib/backends/cuda/device/std/complex), compiled for the CPU:
// for complex_test.cpp, which has the C++ library's. Namespaces are renamed by tests/meson.build,
// so that the two do not meet.
// SPDX-License-Identifier: Apache-2.0

// What CUDA's language has, and headers of kernels use.
extern "C" {
float floorf(float) noexcept;
double floor(double) noexcept;
float ceilf(float) noexcept;
double ceil(double) noexcept;
float truncf(float) noexcept;
double trunc(double) noexcept;
float nearbyintf(float) noexcept;
double nearbyint(double) noexcept;
float fmodf(float, float) noexcept;
double fmod(double, double) noexcept;
float hypotf(float, float) noexcept;
double hypot(double, double) noexcept;
void* memcpy(void*, const void*, unsigned long) noexcept;
void* memset(void*, int, unsigned long) noexcept;
}
inline float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }
inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
inline double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }

#include <complex>

#include "base/math.cpp"

// numbers: the parts of z, and of w; result: the parts of f(z), or of f(z, w).
#define DEVICE(name, value)                                                \
  extern "C" void device_##name(const double* numbers, double* result) {   \
    [[maybe_unused]] const std::complex<double> z(numbers[0], numbers[1]), \
        w(numbers[2], numbers[3]);                                         \
    const std::complex<double> f = value;                                  \
    result[0] = f.real();                                                  \
    result[1] = f.imag();                                                  \
  }
DEVICE(exp, std::exp(z))
DEVICE(log, std::log(z))
DEVICE(sin, std::sin(z))
DEVICE(cos, std::cos(z))
DEVICE(tanh, std::tanh(z))
DEVICE(sqrt, std::sqrt(z))
DEVICE(pow, std::pow(z, w))
DEVICE(multiply, z* w)
DEVICE(divide, z / w)
