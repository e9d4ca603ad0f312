// For tests that need a backend that may not be installed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <plait/plait.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>

namespace plait {

// Nothing, saying why, where it is not installed; unless it must be, by PLAIT_REQUIRE_ONEDNN and
// the like.
inline const Backend* backend_here(const std::string& name) {
  const Backend* const found = find_backend(name);
  if (found) return found;
  MESSAGE("skipped: there is no " << name);
  for (const MissingBackend& missing : missing_backends())
    MESSAGE(missing.name << ": " << missing.reason);
  std::string variable = "PLAIT_REQUIRE_" + name;
  std::transform(variable.begin(), variable.end(), variable.begin(),
                 [](unsigned char c) { return char(std::toupper(c)); });
  const char* const required = std::getenv(variable.c_str());
  REQUIRE((!required || !*required || std::string(required) == "0"));
  return nullptr;
}

}  // namespace plait
