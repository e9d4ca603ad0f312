// plait::numpy: NumPy's functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/numpy.h>
#include <plait/functions/numpy_analysis.h>
#include <plait/functions/numpy_edits.h>
#include <plait/functions/numpy_eig.h>
#include <plait/functions/numpy_fft.h>
#include <plait/functions/numpy_linalg.h>
#include <plait/functions/numpy_numbers.h>
#include <plait/functions/numpy_pad.h>
#include <plait/functions/subscript.h>
