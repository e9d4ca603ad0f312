// Programs over the carriers of stored dtypes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

namespace plait::compile_passes {

// The same program, at every depth, with the integers that are in memory for elements of stored
// dtypes (NOTE: [stored dtypes] in base/dtype.h): these only move, and what reads them as numbers
// is a bitcast and arithmetic of integers. The program itself where it has none.
Jaxpr with_carriers(const Jaxpr& program);

}  // namespace plait::compile_passes
