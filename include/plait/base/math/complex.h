// Functions of a complex scalar: exp, log, sin, cos, tanh, sqrt, pow.
//
// Annex G of C99 holds, because all but pow are the C library's. complex<float> is evaluated in
// double, so that the error is little more than that of the last rounding.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Kernels for GPUs that have no complex numbers leave this out: to read it takes their compiler
// long.
#ifndef PLAIT_NO_COMPLEX

#include <cmath>
#include <complex>

#include <plait/base/math/power.h>
#include <plait/base/math/trig.h>

namespace plait::math {

template <class T>
std::complex<T> exp(std::complex<T> z) {
  return std::complex<T>(std::exp(std::complex<double>(z)));
}
template <class T>
std::complex<T> log(std::complex<T> z) {
  return std::complex<T>(std::log(std::complex<double>(z)));
}
template <class T>
std::complex<T> sin(std::complex<T> z) {
  return std::complex<T>(std::sin(std::complex<double>(z)));
}
template <class T>
std::complex<T> cos(std::complex<T> z) {
  return std::complex<T>(std::cos(std::complex<double>(z)));
}
template <class T>
std::complex<T> tanh(std::complex<T> z) {
  return std::complex<T>(std::tanh(std::complex<double>(z)));
}
template <class T>
std::complex<T> sqrt(std::complex<T> z) {
  return std::complex<T>(std::sqrt(std::complex<double>(z)));
}

// z^w: products for small integers w; else |z|^c e^(-d arg z) at the angle d log |z| + c arg z,
// with w = c + id. As in NumPy z^0 = 1, 0^w = 0 where c > 0, and NaN for the other powers of 0.
std::complex<double> pow(std::complex<double> z, std::complex<double> w);
inline std::complex<float> pow(std::complex<float> z, std::complex<float> w) {
  return std::complex<float>(pow(std::complex<double>(z), std::complex<double>(w)));
}

}  // namespace plait::math

#endif
