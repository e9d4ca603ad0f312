// Finding CUDA's libraries at run time: nothing of CUDA is linked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/library.h"

namespace plait::cuda {

// Where it may be. A driver belongs to the system; the rest also comes in wheels of Python.
enum class Origin { system, wheels };

// Looks in the folders of PLAIT_CUDA_LIBRARIES (separated by ':'), among what the process has
// loaded, in wheels (nvidia/*/lib in the folders of PLAIT_WHEELS, and beside plait's own package),
// where the loader looks, and in /usr/local/cuda*/lib64.
Library load_library(const std::string& name, Origin origin);

}  // namespace plait::cuda
