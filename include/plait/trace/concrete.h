// Makes concrete arrays whose type is already known.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/array.h>

namespace plait {

// The array of this type with this value; aval is the buffer's, weak or not. A literal has rank 0.
Array make_concrete(const Aval& aval, Buffer buffer, bool is_literal = false);

}  // namespace plait
