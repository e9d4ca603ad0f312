// When the interrupt check runs. See interrupt.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/interrupt.h>

#include <x86intrin.h>

namespace plait {
namespace {

// Ticks of the processor's clock, of which there are 2 to 5 in a nanosecond. Reading it takes a
// tenth of the time of the shortest loop step. Python's check waits for the interpreter, which
// another thread may hold for 5 ms, so it must not run more often.
constexpr std::uint64_t period = std::uint64_t(1) << 27;

constinit thread_local std::uint64_t asked_at = 0;

}  // namespace

constinit std::atomic<InterruptCheck> detail::interrupt_check{nullptr};

InterruptCheck set_interrupt_check(InterruptCheck check) {
  return detail::interrupt_check.exchange(check, std::memory_order_acq_rel);
}

void detail::check_interrupts_now_and_then() {
  const std::uint64_t now = __rdtsc();
  // Unsigned, so that a clock that is set back triggers the check at once.
  if (now - asked_at < period) return;
  asked_at = now;
  if (const InterruptCheck check = interrupt_check.load(std::memory_order_acquire)) check();
}

InterruptWatch::InterruptWatch() : thread_(&asked_at) {}

bool InterruptWatch::should_stop() noexcept {
  if (is_stopped_.load(std::memory_order_relaxed)) return true;
  if (thread_ != &asked_at) return false;
  try {
    check_interrupts();
    return false;
  } catch (...) {
    thrown_ = std::current_exception();
    is_stopped_.store(true, std::memory_order_relaxed);
    return true;
  }
}

}  // namespace plait
