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

// What has so many bytes in the language of kernels: an unsigned integer, or two.
const char* word_text(std::size_t bytes);
// The kernel "copy" of elements of so many bytes: 1, 2, 4, 8 or 16; for counts that int holds, or
// wide ones.
std::string text_of_copy(std::size_t bytes, bool is_wide);

}  // namespace plait::cuda
