// The backend itself, for those who register it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

namespace plait::llvm {

std::unique_ptr<Backend> make_backend();

}  // namespace plait::llvm
