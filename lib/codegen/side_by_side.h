// Examples that go their own ways, side by side in the lanes of vectors.
//
//   apart for v1 in 0..1000          parallel for v1 in 0..1000
//     v2: float64 = load m0[v1]        v2: float64 = load m0[v1]
//     while ...                        while ...
//
// Examples in lanes leave a while loop together, when the last of them ends, and what a step
// computes of one that has ended is discarded. A step takes hardly more than that of one example,
// so that this is better wherever lanes can run the loop (L6), however different the examples are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

// Makes loops parallel whose steps are apart and hold while loops, where lanes can run them and are
// predicted to take less.
void run_side_by_side(LoopProgram& program);

}  // namespace plait::codegen
