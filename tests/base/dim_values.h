// Sizes at values of their names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dim.h>

#include <map>
#include <string>

namespace plait {

using Values = std::map<std::string, std::int64_t, std::less<>>;

inline std::int64_t evaluate(Dim dim, const Values& values) {
  return dim.evaluate([&](std::string_view name) -> std::optional<std::int64_t> {
    const auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    return found->second;
  });
}

}  // namespace plait
