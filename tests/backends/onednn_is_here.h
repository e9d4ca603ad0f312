// For tests that need oneDNN.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <plait/plait.h>

#include <cstdlib>
#include <string>

namespace plait {

// False where oneDNN is not installed, unless it must be.
inline bool onednn_is_here() {
  const bool found = find_backend("onednn") != nullptr;
  const char* required = std::getenv("PLAIT_REQUIRE_ONEDNN");
  if (required && *required && std::string(required) != "0") {
    for (const MissingBackend& missing : missing_backends())
      MESSAGE(missing.name << ": " << missing.reason);
    REQUIRE(found);
  }
  if (!found) MESSAGE("skipped: oneDNN is not installed");
  return found;
}

}  // namespace plait
