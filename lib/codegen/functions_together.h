// Functions of numbers that lanes compute at once. See functions_together.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

// The statements of a block that is not within lanes, by number, in an order in which they may be
// written: several of one entry compute the same function of real numbers that are known before.
// vector_bytes: of the lanes that compute them.
std::vector<std::vector<std::size_t>> functions_together(const LoopProgram& program,
                                                         const Block& block, int vector_bytes);

}  // namespace plait::codegen
