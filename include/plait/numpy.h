// plait::numpy: NumPy's functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/numpy.h>
#include <plait/functions/numpy_linalg.h>
#include <plait/functions/subscript.h>
