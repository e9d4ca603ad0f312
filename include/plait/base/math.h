// Elementary functions, lane by lane: each takes float, double, Pack<float, 8> or Pack<double, 4>, and
// gives the same bits for a value whatever the width and the neighbours.
//
// NaN, infinities, signed zeros and denormals behave as in C99's Annex F; rounding is to nearest. The
// primitive operations (fma, sqrt, floor, ceil, round, trunc, minimum, ...) are in pack.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plait/base/math/arc.h"
#include "plait/base/math/complex.h"
#include "plait/base/math/erf.h"
#include "plait/base/math/exp.h"
#include "plait/base/math/gamma.h"
#include "plait/base/math/log.h"
#include "plait/base/math/power.h"
#include "plait/base/math/trig.h"
