// plait::scipy: special functions, distributions, linear algebra.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/scipy.h>
#include <plait/functions/scipy_fft.h>
#include <plait/functions/scipy_linalg.h>
#include <plait/functions/scipy_matrices.h>
#include <plait/functions/scipy_stats.h>
