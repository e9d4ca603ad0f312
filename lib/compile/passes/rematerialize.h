// Rematerialisation across loops. See rematerialize.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/rules.h>

namespace plait::compile_passes {

// The program with scans that recompute cheap slices instead of reading what another scan stacked
// for them. Empty if there are none.
Jaxpr rematerialize(const Jaxpr& program);

}  // namespace plait::compile_passes
