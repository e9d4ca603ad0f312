// Stopping a call that takes long: Ctrl-C, a time limit, a button.
//
// A process may install one function that what runs for long asks every fifty milliseconds or so,
// on the thread that made the call, at places where nothing is half done: between kernels, between
// steps of loops, and now and then within a loop that is one kernel. The function stops the call by
// throwing, and the caller gets what it threw; results are lost, arguments that were donated too,
// and everything else is as it was. Python's module installs one that runs handlers of signals.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

namespace plait {

using InterruptCheck = void (*)();
// From now on, for all threads; nullptr asks nobody. Returns the one before.
InterruptCheck set_interrupt_check(InterruptCheck check);

namespace detail {
extern std::atomic<InterruptCheck> interrupt_check;
void check_interrupts_now_and_then();
}  // namespace detail

// Asks, if it is time to.
inline void check_interrupts() {
  if (detail::interrupt_check.load(std::memory_order_relaxed))
    detail::check_interrupts_now_and_then();
}

// For code that exceptions cannot pass, and that several threads run: the thread that made this
// asks, and all hear of it.
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
  std::exception_ptr thrown_;  // written by that thread
  std::atomic<bool> is_stopped_{false};
};

}  // namespace plait
