// What texts of kernels include that call elementary functions, compiled once: see ../libnvrtc.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/kernel.h>

#if __has_include(<plait/functions.h>)
#include <plait/functions.h>
#endif
