// Equations that no input changes. See input_free.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

#include <vector>

namespace plait::compile_passes {

// By equation: whether it is computed once, when the program is compiled, and read as memory by
// every call.
std::vector<bool> find_input_free(const Jaxpr& program);

}  // namespace plait::compile_passes
