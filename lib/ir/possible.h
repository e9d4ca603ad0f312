// Which array types are possible.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/aval.h>

#include <string_view>

namespace plait {

// ShapeError for an impossible shape: negative sizes, more than 64 axes, or a number of bytes that
// exceeds 62 bits. who is the function or primitive that would make it.
void require_possible(const Aval& aval, std::string_view who);

}  // namespace plait
