// Stopping a call that takes long: Ctrl-C, a time limit, a button.
//
// A process may install one function, which long-running code calls every fifty milliseconds or so.
// The call is made on the thread that made the user's call, where no work is half done: between
// kernels, between steps of loops, and at times within a loop that is one kernel. The function
// stops the call by throwing, and the caller receives the exception. Results and donated arguments
// are lost; everything else is as it was. Python's module installs a function that runs signal
// handlers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

namespace plait {

using InterruptCheck = void (*)();
// Takes effect from now on for all threads; nullptr removes the check. Returns the previous one.
InterruptCheck set_interrupt_check(InterruptCheck check);

namespace detail {
extern std::atomic<InterruptCheck> interrupt_check;
void check_interrupts_now_and_then();
}  // namespace detail

// Calls the check if fifty milliseconds have passed.
inline void check_interrupts() {
  if (detail::interrupt_check.load(std::memory_order_relaxed))
    detail::check_interrupts_now_and_then();
}

// For code that exceptions cannot cross and that several threads run: the thread that made the
// watch calls the check, and all threads see its result.
class InterruptWatch {
 public:
  InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  // Whether to stop; never throws.
  bool should_stop() noexcept;
  // What the check threw, if it did.
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  const void* const thread_;
  std::exception_ptr thrown_;  // written by the thread that made the watch
  std::atomic<bool> is_stopped_{false};
};

}  // namespace plait
