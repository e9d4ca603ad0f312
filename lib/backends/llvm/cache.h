// Object files that outlive the process (compile/file_cache.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "compile/file_cache.h"
#include "object.h"

namespace plait::llvm {

using Key = FileCache::Key;
inline Key key_of(std::string_view text) { return FileCache::key_of(text); }

std::optional<Object> read_object(const Key& key);
void write_object(const Key& key, const Object& object);

}  // namespace plait::llvm
