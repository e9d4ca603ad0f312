// The executable of a program, found without a lock by threads that asked for it lately: what eager
// calls ask for each time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/compile.h>

namespace plait {

// That of compile(jaxpr).
std::shared_ptr<const Executable> executable_of(const Jaxpr& jaxpr);

}  // namespace plait
