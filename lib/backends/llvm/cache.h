// Object files that outlive the process: a folder of them, shared by all processes of a user.
//
// It is PLAIT_CACHE_DIR, else plait in XDG_CACHE_HOME, else ~/.cache/plait; "" or 0 is none. A file
// appears whole or not at all, is read only where it belongs to this user and its checksum holds,
// and the oldest go when there are too many. A folder that cannot be written is read all the same.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "object.h"

namespace plait::llvm {

// 128 bits that stand for a text.
using Key = std::array<std::uint64_t, 2>;
Key key_of(std::string_view text);

std::optional<Object> read_object(const Key& key);
void write_object(const Key& key, const Object& object);

}  // namespace plait::llvm
