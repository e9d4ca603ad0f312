// Random numbers of which a slice alone is read. See draw_blocks.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/rules.h>

namespace plait::compile_passes {

// The program in which slices of what is made of random numbers, and that nothing else reads, are
// made of the slices' numbers. Empty if there is none.
Jaxpr draw_blocks(const Jaxpr& program);

}  // namespace plait::compile_passes
