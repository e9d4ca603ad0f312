// Loop programs as CUDA: the second emitter of loop programs. Every stage is a kernel.
//
// The steps of a stage's grid are run by threads, by octets (eight lanes of a warp), by warps or by
// blocks; below, a team. What a step says once, all members of its team compute, and one of them
// stores. Loops whose steps are in any order are shared by the members, or by smaller teams among
// them. A short combination has the eight parts that it has on a CPU, and its bits, a long one
// those of NOTE: [order of long combinations].
//
// A cooperative stage is run by all its blocks, the grid, as one team. Every thread computes the
// numbers that are not a loop's, so that all agree how often it runs; combinations are a block's,
// each for itself.
//
// Loops whose end is not known look now and then whether the host wants them to stop.
//
//   // 1000 steps, by octets
//   extern "C" __global__ void stage_0(In<float> m0, Out<float> m1) {
//     for (long step = team; step < 1000; step += teams) {
//       ...
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stages.h"

namespace plait::cuda {

// Whether sizes, strides and bounds are written in the text, or are given to each launch: then
// arrays of other sizes have the same text, and no compiler is asked again.
enum class Sizes : std::uint8_t { written, given };

struct KernelText {
  std::string name;
  std::string text;           // its function
  std::vector<int> memories;  // its first parameters, by number
  // Further parameters: where the blocks of a cooperative one meet; a word of the program, whether
  // any kernel has failed, if it is guarded by that or may fail; if it may, the failure of the call
  // and its step; and the sizes.
  bool is_cooperative = false, may_fail = false, is_guarded = false;
  std::vector<std::int64_t> sizes;
  int threads = 256;              // of a block
  std::int64_t blocks = 1;        // of a cooperative one: at most
  std::int64_t shared_bytes = 0;  // of a block, beside those that are in the text
};
// The code of a failure that is no check's: the host wanted it to stop.
inline constexpr int stopped_code = -1;
struct ProgramText {
  std::vector<KernelText> kernels;  // in the order in which they run
  // Of the checks of a program, by the code with which they fail, less one.
  std::vector<const codegen::Statement*> checks;
};
// staged: must outlive the result. InternalError for a program that calls kernels.
// shared_of_block: the bytes of a block's own memory, as compute capability 9.0 and 10.0 have them.
ProgramText text_of(const Staged& staged, std::string_view name, Sizes sizes,
                    std::int64_t shared_of_block = 227 << 10);
// The kernels of programs, whose names differ, with what they need before them.
std::string source_of(std::span<const ProgramText* const> programs);

}  // namespace plait::cuda
