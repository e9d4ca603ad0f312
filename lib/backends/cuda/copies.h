// Copies on a device between views with any strides, by a kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>

#include <string>

#include "api.h"

namespace plait::cuda {

inline constexpr std::size_t most_copied_dims = 8;  // of one kernel; in device/plait/copy.h too

// Whether the memory of both is one run of equal order: then bytes are copied.
bool are_one_run(const View& from, const View& to);
// Both are memory of the device, whose context is current.
void copy_strided(Device device, CUstream stream, const View& from, const View& to);

// The kernels copy_4_unsigned, copy_4_long ..., by the bytes of an element and the type of indices.
std::string text_of_copies();

}  // namespace plait::cuda
