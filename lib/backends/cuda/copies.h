// Copies on a device between views with any strides, by a kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>

#include "api.h"

namespace plait::cuda {

// Whether the memory of both is one run of equal order: then bytes are copied.
bool are_one_run(const View& from, const View& to);
// Both are memory of the device, whose context is current.
void copy_strided(Device device, CUstream stream, const View& from, const View& to);

}  // namespace plait::cuda
