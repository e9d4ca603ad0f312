// Merges masked equations on the same sizes, one of which reads what the other computes. A function
// and its derivative then run together, and residuals are never padded. See merge_masked.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

namespace plait::compile_passes {

Jaxpr merge_masked(const Jaxpr& program);

}  // namespace plait::compile_passes
