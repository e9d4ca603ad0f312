// plait::scipy: special functions, distributions, linear algebra, signals, solvers, minimisation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/scipy.h>
#include <plait/functions/scipy_fft.h>
#include <plait/functions/scipy_interpolate.h>
#include <plait/functions/scipy_linalg.h>
#include <plait/functions/scipy_matrices.h>
#include <plait/functions/scipy_ndimage.h>
#include <plait/functions/scipy_optimize.h>
#include <plait/functions/scipy_signal.h>
#include <plait/functions/scipy_sparse.h>
#include <plait/functions/scipy_stats.h>
