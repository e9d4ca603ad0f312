// Planning, the step after partitioning: assigns memory to every value. See plan.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/compile.h>

#include "partition.h"
#include "run/plan.h"

namespace plait::compile_passes {

// between is called before each kernel is compiled, while no lock is held.
Plan make_plan(const Jaxpr& program, Partition partition, const CompileOptions& options,
               const std::function<void()>& between);

}  // namespace plait::compile_passes
