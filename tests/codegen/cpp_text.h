// A loop program as C++ that reads as a person would write it: the twin of what generated code
// does, and what interpreter and generated code are compared with.
//
//   extern "C" long smoothed(void* const* memory, long* index, Call* call, void* calls) {
//     const auto m0 = static_cast<const double*>(memory[0]);  // operand 0: 64 elements
//     auto m1 = static_cast<double*>(memory[1]);  // result 0: 64 elements
//     for (long v3 = 0; v3 < 62; ++v3) {
//       const double v4 = m0[v3 + 1];
//       m1[v3] = v4 * 0.5;
//     }
//     return 0;
//   }
//
// Like every emitter it decides nothing: each statement of the program is a line, or a loop, in the
// order in which it stands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

// A function that returns 0; the number, from 1 on, of the check that failed first, in the order in
// which the program prints them, with what failed in *index; or -1, where a kernel that it called
// through `call` has failed. memory: where each memory of the program begins.
// InternalError for a primitive without a rule Spelling.
std::string cpp_text(const LoopProgram& program, std::string_view function_name);
// What such functions need before them.
std::string_view cpp_text_beginning();

// The checks of a program by the number that a text returns, less one.
std::vector<const Statement*> checks_of(const LoopProgram& program);

}  // namespace plait::codegen
