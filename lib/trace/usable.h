// Checks that an array may be used here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/array.h>

namespace plait {

// ValueError for an Array that holds nothing, TracerError for one outside its trace.
void check_usable(const Array& array);

}  // namespace plait
