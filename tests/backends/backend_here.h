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

// Whether the variable PLAIT_REQUIRE_ONEDNN, or the like of another backend, is set: then a test
// that needs it fails without it.
inline bool is_required(const std::string& backend) {
  std::string variable = "PLAIT_REQUIRE_" + backend;
  std::transform(variable.begin(), variable.end(), variable.begin(),
                 [](unsigned char c) { return char(std::toupper(c)); });
  const char* const required = std::getenv(variable.c_str());
  return required && *required && std::string(required) != "0";
}

// Skips a case where its backend is not installed, unless it is required:
//
//   TEST_CASE("products agree" * needs_backend("onednn")) { ... }
inline doctest::skip needs_backend(const char* name) {
  return doctest::skip(!find_backend(name) && !is_required(name));
}

// The backend of a case that is not skipped.
inline const Backend& backend_here(const std::string& name) {
  const Backend* const found = find_backend(name);
  for (const MissingBackend& missing : missing_backends())
    if (!found) MESSAGE(missing.name << ": " << missing.reason);
  REQUIRE_MESSAGE(found, "there is no " << name);
  return *found;
}

}  // namespace plait
