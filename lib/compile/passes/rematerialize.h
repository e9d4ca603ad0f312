// Rematerialisation across loops. See rematerialize.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/rules.h>

namespace plait::compile_passes {

// The same program whose scans compute cheap slices again instead of reading what another scan
// stacked for them; empty when there is none.
Jaxpr rematerialize(const Jaxpr& program);

}  // namespace plait::compile_passes
