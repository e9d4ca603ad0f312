// plait::scipy: special functions, the normal distribution, linear algebra.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/scipy.h>
#include <plait/functions/scipy_linalg.h>
