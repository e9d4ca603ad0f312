// The executable of a program, from a cache per thread and without a lock: for eager calls, which
// look it up each time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/compile.h>

namespace plait {

// Equal to compile(jaxpr, {.device = device}).
std::shared_ptr<const Executable> executable_of(const Jaxpr& jaxpr, Device device = {});

}  // namespace plait
