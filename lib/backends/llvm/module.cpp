// The llvm backend as a module of the library, which registers it where libLLVM is found. What
// plait compile makes has embedded.cpp instead.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string_view>

#include "backend.h"
#include "library.h"

namespace plait::llvm {
namespace {

bool register_llvm() {
  const char* asked = std::getenv("PLAIT_LLVM");
  if (asked && std::string_view(asked) == "0") return false;
  if (std::string failure = find_library(); !failure.empty())
    return report_missing_backend("llvm", std::move(failure));
  return register_backend(make_backend(), Preference::loops);
}

const bool registered = register_llvm();

}  // namespace
}  // namespace plait::llvm
