// Groups as loop programs that run without generated code. See interpreter.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

namespace plait {

// A group that has a loop program.
std::unique_ptr<Kernel> make_interpreted(const Jaxpr& group);

}  // namespace plait
