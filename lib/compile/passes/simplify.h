// Simplification: the same program with fewer and simpler equations. See
// simplify.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compile/passes/pipeline.h"
#include "rewriting/peephole.h"

namespace plait::compile_passes {

// Inlines calls, decomposes primitives without kernels, merges common subexpressions, drops dead
// equations, folds scalars, applies algebra, and makes loops smaller.
Jaxpr simplify_equations(const Jaxpr& program, const KeepWhole& keep);

// Rules, each of which is one bit-exact law.
const PeepholeRules& algebra();

}  // namespace plait::compile_passes
