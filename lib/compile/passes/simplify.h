// The first pass of compilation: the same program with fewer and plainer equations. See
// simplify.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compile/passes/pipeline.h"
#include "rewriting/peephole.h"

namespace plait::compile_passes {

// Calls inlined, primitives without kernels decomposed, common subexpressions merged, dead
// equations dropped, scalars folded, algebra applied, and loops made smaller.
Jaxpr simplify_equations(const Jaxpr& program, const KeepWhole& keep);

// Rules of which each is one bit-exact law.
const PeepholeRules& algebra();

}  // namespace plait::compile_passes
