// Reads the text of a loop program, the exact inverse of print.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

// A kernel for the program of one equation, whose inputs have these strides; none where there is
// none.
using KernelFor =
    std::function<std::shared_ptr<const Kernel>(const Jaxpr&, std::span<const Sizes64> strides)>;

// ValueError, with line and column, for text that is no loop program, that breaks an invariant, or
// that has a call for which there is no kernel. A check of the program raises an IndexError that
// names the index and its bounds, since the text does not hold the one of the primitive.
//
// Comments, from # to the end of a line, may stand anywhere; those that print writes are kept.
LoopProgram parse(std::string_view text, const KernelFor& kernel_for = {});

}  // namespace plait::codegen
