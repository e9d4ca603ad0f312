// The error of a while loop that has not ended after max_steps.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/error.h>

#include <cstdint>

namespace plait {

inline ValueError endless(std::int64_t steps) {
  return ValueError(
      "while_loop: the condition still holds after max_steps = " + std::to_string(steps) + " steps",
      "let the condition become false, or raise max_steps");
}

}  // namespace plait
