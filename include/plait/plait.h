// All of plait: arrays, NumPy's functions, transforms over C++ functions, jaxprs and their text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/api.h>
#include <plait/ops.h>
#include <plait/run.h>
#include <plait/transforms.h>
