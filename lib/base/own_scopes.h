// The scopes of a program are its own: while one is traced, those around it do not count. What
// reads a body, or puts it in place of its equation, adds the scopes of that.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/source.h>

namespace plait {

// In its scope, on this thread, lines are in no named scope but those entered since.
class OwnScopes {
 public:
  OwnScopes();
  ~OwnScopes();
  OwnScopes(const OwnScopes&) = delete;

 private:
  const Source line_;       // of the equation being rewritten, if there is one
  const std::string path_;  // of the scopes around
};

}  // namespace plait
