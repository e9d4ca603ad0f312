// What a benchmark prints is of right results: a program that computes something else says so, and
// ends with status 1 before it prints any time of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "WRONG: %s\n", what);
  std::exit(1);
}

inline void require_near(double actual, double expected, double tolerance, const char* what) {
  if (std::abs(actual - expected) <= tolerance * (1 + std::abs(expected))) return;  // not of NaN
  std::fprintf(stderr, "WRONG: %s is %.9g where %.9g is right\n", what, actual, expected);
  std::exit(1);
}
