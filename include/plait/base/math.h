// Elementary functions, lane by lane: each takes float, double, Pack<float, 8> or Pack<double, 4>,
// and gives the same bits for a value whatever the width, the neighbours and the compiler.
//
// NaN, infinities, signed zeros and denormals behave as in C99's Annex F; rounding is to nearest.
// The primitive operations (fma, sqrt, floor, ceil, round, trunc, minimum, ...) are in pack.h.
// Largest errors that tests/base/math_test.cpp has found, in units of the last place:
//
//               float  double                float  double                float  double
//   exp         1.01   1.03      log         0.99   0.84      asin        1.95   1.98
//   exp2        0.91   0.85      log2        1.10   1.07      acos        1.07   1.12
//   expm1       1.29   1.30      log10       1.10   0.95      atan        1.25   1.36
//   sinh        1.59   1.62      log1p       1.00   0.86      atan2       1.49   1.59
//   cosh        1.43   1.44      asinh       0.51   1.71      erf         1.31   1.06
//   tanh        1.31   1.31      acosh       0.51   2.01      erfc        0.51   2.74
//   logistic    1.48   1.48      atanh       0.51   1.95      erf_inv     0.56   1.84
//   sin         1.39   1.17      pow         0.51   0.98      lgamma      0.51   3.44
//   cos         1.24   1.13      cbrt        0.51   0.51      digamma     0.51   3.61
//   tan         1.92   1.65      rem         exact  exact
//
// On the negative axis lgamma and digamma have these errors relative to the larger of the two terms
// of their reflections, not to the result, which may be near 0.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/math/arc.h>
#include <plait/base/math/complex.h>
#include <plait/base/math/erf.h>
#include <plait/base/math/exp.h>
#include <plait/base/math/gamma.h>
#include <plait/base/math/log.h>
#include <plait/base/math/power.h>
#include <plait/base/math/trig.h>
