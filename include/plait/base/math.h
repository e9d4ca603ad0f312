// Elementary functions, lane by lane: each takes float, double, Pack<float, 8> or Pack<double, 4>,
// and gives the same bits whatever the width.
//
// NaN, infinities, signed zeros and denormals behave as in C99's Annex F.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <limits>

#include "plait/base/pack.h"

namespace plait::math {

template <RealLanes V>
V exp(V x) {
  return each_lane([](auto a) { return std::exp(a); }, x);
}
template <RealLanes V>
V exp2(V x) {
  return each_lane([](auto a) { return std::exp2(a); }, x);
}
template <RealLanes V>
V expm1(V x) {
  return each_lane([](auto a) { return std::expm1(a); }, x);
}
template <RealLanes V>
V sinh(V x) {
  return each_lane([](auto a) { return std::sinh(a); }, x);
}
template <RealLanes V>
V cosh(V x) {
  return each_lane([](auto a) { return std::cosh(a); }, x);
}
template <RealLanes V>
V tanh(V x) {
  return each_lane([](auto a) { return std::tanh(a); }, x);
}
template <RealLanes V>
V log(V x) {
  return each_lane([](auto a) { return std::log(a); }, x);
}
template <RealLanes V>
V log2(V x) {
  return each_lane([](auto a) { return std::log2(a); }, x);
}
template <RealLanes V>
V log10(V x) {
  return each_lane([](auto a) { return std::log10(a); }, x);
}
template <RealLanes V>
V log1p(V x) {
  return each_lane([](auto a) { return std::log1p(a); }, x);
}
template <RealLanes V>
V asinh(V x) {
  return each_lane([](auto a) { return std::asinh(a); }, x);
}
template <RealLanes V>
V acosh(V x) {
  return each_lane([](auto a) { return std::acosh(a); }, x);
}
template <RealLanes V>
V atanh(V x) {
  return each_lane([](auto a) { return std::atanh(a); }, x);
}
template <RealLanes V>
V sin(V x) {
  return each_lane([](auto a) { return std::sin(a); }, x);
}
template <RealLanes V>
V cos(V x) {
  return each_lane([](auto a) { return std::cos(a); }, x);
}
template <RealLanes V>
V tan(V x) {
  return each_lane([](auto a) { return std::tan(a); }, x);
}
template <RealLanes V>
V asin(V x) {
  return each_lane([](auto a) { return std::asin(a); }, x);
}
template <RealLanes V>
V acos(V x) {
  return each_lane([](auto a) { return std::acos(a); }, x);
}
template <RealLanes V>
V atan(V x) {
  return each_lane([](auto a) { return std::atan(a); }, x);
}
template <RealLanes V>
V erf(V x) {
  return each_lane([](auto a) { return std::erf(a); }, x);
}
template <RealLanes V>
V erfc(V x) {
  return each_lane([](auto a) { return std::erfc(a); }, x);
}
template <RealLanes V>
V lgamma(V x) {
  return each_lane([](auto a) { return std::lgamma(a); }, x);
}
template <RealLanes V>
V cbrt(V x) {
  return each_lane([](auto a) { return std::cbrt(a); }, x);
}
template <RealLanes V>
V pow(V x, V y) {
  return each_lane([](auto a, auto b) { return std::pow(a, b); }, x, y);
}
template <RealLanes V>
V atan2(V y, V x) {
  return each_lane([](auto a, auto b) { return std::atan2(a, b); }, y, x);
}
template <RealLanes V>
V rem(V x, V y) {
  return each_lane([](auto a, auto b) { return std::fmod(a, b); }, x, y);
}
template <RealLanes V>
V logistic(V x) {
  V e = exp(-abs(x));
  return select(x < V(0), e, V(1)) / (e + V(1));
}
inline double erf_inv(double x) {
  if (!(std::abs(x) < 1)) return x / (1 - std::abs(x)) * (std::abs(x) == 1);
  double w = -std::log((1 - x) * (1 + x)), a = 2 / 3.14159265358979 / 0.147 - w / 2;
  double y = std::copysign(std::sqrt(std::sqrt(a * a + w / 0.147) - a), x);
  for (int i = 0; i < 4; ++i) y -= (std::erf(y) - x) / (1.1283791670955126 * std::exp(-y * y));
  return y;
}
inline float erf_inv(float x) { return float(erf_inv(double(x))); }
template <class T, int N>
Pack<T, N> erf_inv(Pack<T, N> x) {
  return each_lane([](T a) { return erf_inv(a); }, x);
}
inline double digamma(double x) {
  if (x <= 0 && x == std::floor(x)) return std::numeric_limits<double>::quiet_NaN();
  double r = 0;
  if (x < 0) return digamma(1 - x) - 3.141592653589793 / std::tan(3.141592653589793 * x);
  for (; x < 10; ++x) r -= 1 / x;
  double z = 1 / (x * x);
  return r + std::log(x) - 0.5 / x - z * (1. / 12 - z * (1. / 120 - z * (1. / 252 - z / 240)));
}
inline float digamma(float x) { return float(digamma(double(x))); }
template <class T, int N>
Pack<T, N> digamma(Pack<T, N> x) {
  return each_lane([](T a) { return digamma(a); }, x);
}
template <class T>
std::complex<T> exp(std::complex<T> z) {
  return std::exp(z);
}
template <class T>
std::complex<T> log(std::complex<T> z) {
  return std::log(z);
}
template <class T>
std::complex<T> sin(std::complex<T> z) {
  return std::sin(z);
}
template <class T>
std::complex<T> cos(std::complex<T> z) {
  return std::cos(z);
}
template <class T>
std::complex<T> tanh(std::complex<T> z) {
  return std::tanh(z);
}
template <class T>
std::complex<T> sqrt(std::complex<T> z) {
  return std::sqrt(z);
}
template <class T>
std::complex<T> pow(std::complex<T> z, std::complex<T> w) {
  return std::pow(z, w);
}

}  // namespace plait::math
