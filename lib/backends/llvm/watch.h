// How generated loops ask whether to stop.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/interrupt.h>

namespace plait::llvm {

// What generated loops ask, and may look at between. Those that have begun leave steps out then.
struct Watch {
  std::atomic<std::int64_t> is_stopped{0};
  InterruptWatch interrupts;

  static std::int64_t ask(void* self) {
    Watch& watch = *static_cast<Watch*>(self);
    if (watch.interrupts.should_stop()) watch.is_stopped.store(1, std::memory_order_relaxed);
    return watch.is_stopped.load(std::memory_order_relaxed);
  }
};

}  // namespace plait::llvm
