// Which arrays there can be at all.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/aval.h>

#include <string_view>

namespace plait {

// ShapeError for a shape that no array has: negative sizes, more than 64 axes, or more bytes than
// 62 bits count. who is the function or primitive that would make it.
void require_possible(const Aval& aval, std::string_view who);

}  // namespace plait
