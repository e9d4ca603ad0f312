// Functions of <cmath> and <complex> over Arrays, found by argument-dependent lookup, so that
// templates over double and Array compile:
//
//   template <class T>
//   T wave(const T& x) { using std::sin, std::exp; return exp(-x) * sin(x); }
//
// They are those of numpy.h. They are templates, so that a visible non-template, such as numpy::sin
// after a using-directive, is preferred instead of being ambiguous.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/numpy.h>

namespace plait::standard {

template <int = 0>
Array abs(Operand x) {
  return numpy::abs(std::move(x));
}
template <int = 0>
Array fabs(Operand x) {
  return numpy::fabs(std::move(x));
}
template <int = 0>
Array floor(Operand x) {
  return numpy::floor(std::move(x));
}
template <int = 0>
Array ceil(Operand x) {
  return numpy::ceil(std::move(x));
}
template <int = 0>
Array trunc(Operand x) {
  return numpy::trunc(std::move(x));
}
template <int = 0>
Array rint(Operand x) {
  return numpy::rint(std::move(x));
}
template <int = 0>
Array round(Operand x) {
  return numpy::round(std::move(x));
}
template <int = 0>
Array exp(Operand x) {
  return numpy::exp(std::move(x));
}
template <int = 0>
Array exp2(Operand x) {
  return numpy::exp2(std::move(x));
}
template <int = 0>
Array expm1(Operand x) {
  return numpy::expm1(std::move(x));
}
template <int = 0>
Array log(Operand x) {
  return numpy::log(std::move(x));
}
template <int = 0>
Array log2(Operand x) {
  return numpy::log2(std::move(x));
}
template <int = 0>
Array log10(Operand x) {
  return numpy::log10(std::move(x));
}
template <int = 0>
Array log1p(Operand x) {
  return numpy::log1p(std::move(x));
}
template <int = 0>
Array sqrt(Operand x) {
  return numpy::sqrt(std::move(x));
}
template <int = 0>
Array cbrt(Operand x) {
  return numpy::cbrt(std::move(x));
}
template <int = 0>
Array sin(Operand x) {
  return numpy::sin(std::move(x));
}
template <int = 0>
Array cos(Operand x) {
  return numpy::cos(std::move(x));
}
template <int = 0>
Array tan(Operand x) {
  return numpy::tan(std::move(x));
}
template <int = 0>
Array asin(Operand x) {
  return numpy::asin(std::move(x));
}
template <int = 0>
Array acos(Operand x) {
  return numpy::acos(std::move(x));
}
template <int = 0>
Array atan(Operand x) {
  return numpy::atan(std::move(x));
}
template <int = 0>
Array sinh(Operand x) {
  return numpy::sinh(std::move(x));
}
template <int = 0>
Array cosh(Operand x) {
  return numpy::cosh(std::move(x));
}
template <int = 0>
Array tanh(Operand x) {
  return numpy::tanh(std::move(x));
}
template <int = 0>
Array asinh(Operand x) {
  return numpy::asinh(std::move(x));
}
template <int = 0>
Array acosh(Operand x) {
  return numpy::acosh(std::move(x));
}
template <int = 0>
Array atanh(Operand x) {
  return numpy::atanh(std::move(x));
}
template <int = 0>
Array isnan(Operand x) {
  return numpy::isnan(std::move(x));
}
template <int = 0>
Array isinf(Operand x) {
  return numpy::isinf(std::move(x));
}
template <int = 0>
Array isfinite(Operand x) {
  return numpy::isfinite(std::move(x));
}
template <int = 0>
Array signbit(Operand x) {
  return numpy::signbit(std::move(x));
}
template <int = 0>
Array real(Operand x) {
  return numpy::real(std::move(x));
}
template <int = 0>
Array imag(Operand x) {
  return numpy::imag(std::move(x));
}
template <int = 0>
Array conj(Operand x) {
  return numpy::conj(std::move(x));
}
template <int = 0>
Array erf(Operand x) {
  return lax::erf(std::move(x));
}
template <int = 0>
Array lgamma(Operand x) {
  return lax::lgamma(std::move(x));
}
template <int = 0>
Array pow(Operand x, Operand y) {
  return numpy::pow(std::move(x), std::move(y));
}
template <int = 0>
Array fmod(Operand x, Operand y) {
  return numpy::fmod(std::move(x), std::move(y));
}
template <int = 0>
Array hypot(Operand x, Operand y) {
  return numpy::hypot(std::move(x), std::move(y));
}
template <int = 0>
Array atan2(Operand x, Operand y) {
  return numpy::atan2(std::move(x), std::move(y));
}
template <int = 0>
Array fmax(Operand x, Operand y) {
  return numpy::fmax(std::move(x), std::move(y));
}
template <int = 0>
Array fmin(Operand x, Operand y) {
  return numpy::fmin(std::move(x), std::move(y));
}
template <int = 0>
Array copysign(Operand x, Operand y) {
  return numpy::copysign(std::move(x), std::move(y));
}
template <int = 0>
Array nextafter(Operand x, Operand y) {
  return numpy::nextafter(std::move(x), std::move(y));
}

}  // namespace plait::standard
