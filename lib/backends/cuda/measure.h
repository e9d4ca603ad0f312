// Choices between ways to compute the same, by measurement: which of a library's algorithms is the
// fastest on a device. They are made when a program is compiled, not when it runs, since streams
// may be captured then. What was chosen is kept on disk (PLAIT_CACHE_DIR), so that the next process
// chooses the same, and so gives the same bits, without measuring. PLAIT_MEASURE=0 measures
// nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/device.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api.h"

namespace plait::cuda {

// Candidates that are measured, at most: the first ones that a library proposes.
inline constexpr int most_candidates = 4;

struct Candidate {
  std::string identity;  // by which it is known in another process
  // Computes once, in blocks of memory that hold nothing.
  std::function<void(CUstream, std::span<void* const>)> run;
};

bool measures();  // PLAIT_MEASURE

// What is kept of an earlier measurement: the identity that was chosen.
std::optional<std::string> kept_choice(Device device, const std::string& problem);
// The number of the fastest. The first one where nothing is measured: it is then the choice of the
// library. problem: all that the choice depends on, beside the device. bytes: of the blocks.
std::size_t fastest(Device device, const std::string& problem,
                    std::span<const Candidate> candidates, std::span<const std::size_t> bytes);

}  // namespace plait::cuda
