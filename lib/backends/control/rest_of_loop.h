// How a loop of unknown length that began on the first tier goes on as one kernel of a slow
// backend: see NOTE: [tiers].
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/control/primitives.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>

#include "control.h"

namespace plait {

// A while loop as a program of its own. One with a bound has none there: it counts its steps, in a
// carry behind the others, while they are fewer than an operand behind those of the condition, so
// that it serves from every step on.
Jaxpr rest_program(const Equation& equation, std::span<const Aval> operands);

class RestOfLoop {
 public:
  static constexpr std::int64_t steps_between_looks = 16;

  // program: makes a program of one equation, which is the loop from any step on.
  RestOfLoop(const WhileParams& loop, Device device, const std::function<Jaxpr()>& program);

  // Whether a run that began then has taken as long as compiling the rest would, or that is done.
  bool pays(std::chrono::steady_clock::time_point start) const {
    return backend_ && (is_compiled_.load(std::memory_order_acquire) ||
                        std::chrono::steady_clock::now() - start >= compilation_);
  }

  // All remaining steps, from operands of the program: memory apart from its outputs. Whether it
  // could.
  bool run(std::span<const View> operands, std::span<const View> outputs,
           const Launch& launch) const;

 private:
  Jaxpr program_;
  const Backend* backend_ = nullptr;
  std::chrono::nanoseconds compilation_{};
  mutable std::once_flag once_;
  mutable std::unique_ptr<Kernel> kernel_;
  mutable std::atomic<bool> is_compiled_{false};
};

}  // namespace plait
