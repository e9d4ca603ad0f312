// Sizes that join those in scope (see trace/sizes.h) after the scope has begun.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dim.h>

namespace plait {

// Adds a size to the innermost SizeScope.
void add_to_size_scope(Dim size);

}  // namespace plait
