// lgamma, digamma. Scalar routines in double (lib/base/math.cpp); packs loop over their lanes,
// floats are evaluated in double.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/pack.h>

namespace plait::math {

// log |Gamma(x)|. Relative accuracy for x > 0, absolute near the zeros on the negative axis.
double lgamma(double x);
inline float lgamma(float x) { return static_cast<float>(lgamma(static_cast<double>(x))); }
template <class T, int N>
Pack<T, N> lgamma(Pack<T, N> x) {
  return each_lane([](T lane) { return lgamma(lane); }, x);
}

// Gamma'(x) / Gamma(x). NaN at negative integers, -+infinity at +-0.
double digamma(double x);
inline float digamma(float x) { return static_cast<float>(digamma(static_cast<double>(x))); }
template <class T, int N>
Pack<T, N> digamma(Pack<T, N> x) {
  return each_lane([](T lane) { return digamma(lane); }, x);
}

}  // namespace plait::math
