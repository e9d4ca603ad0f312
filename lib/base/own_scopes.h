// A program has its own named scopes: those around its tracing do not count. Code that reads a
// body, or splices it in place of its equation, adds the scopes of that equation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/source.h>

namespace plait {

// In its scope, on this thread, lines belong only to named scopes entered since.
class OwnScopes {
 public:
  OwnScopes();
  ~OwnScopes();
  OwnScopes(const OwnScopes&) = delete;

 private:
  const Source line_;       // of the equation being rewritten, if there is one
  const std::string path_;  // the path of the enclosing scopes
};

}  // namespace plait
