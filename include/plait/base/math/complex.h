// Functions of a complex scalar: exp, log, sin, cos, tanh, sqrt, pow.
//
// Annex G of C99 holds, because all but pow are the C library's; complex<float> is evaluated in
// double, which costs little and leaves hardly more error than the last rounding.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>

#include "plait/base/math/power.h"

namespace plait::math {

inline std::complex<double> exp(std::complex<double> z) { return std::exp(z); }
inline std::complex<double> log(std::complex<double> z) { return std::log(z); }
inline std::complex<double> sin(std::complex<double> z) { return std::sin(z); }
inline std::complex<double> cos(std::complex<double> z) { return std::cos(z); }
inline std::complex<double> tanh(std::complex<double> z) { return std::tanh(z); }
inline std::complex<double> sqrt(std::complex<double> z) { return std::sqrt(z); }

inline std::complex<float> exp(std::complex<float> z) { return std::complex<float>(exp(std::complex<double>(z))); }
template <class T>
std::complex<T> pow(std::complex<T> x, std::complex<T> y) {
  if (x == T(0) && y == T(0)) return T(1);
  return std::complex<T>(std::pow(std::complex<double>(x), std::complex<double>(y)));
}

}  // namespace plait::math
