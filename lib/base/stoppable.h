// Work that may go on for long, and ends soon when the host asks it to: whoever waits for it may be
// interrupted (interrupt.h), and then wants neither the wait nor the results.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/stream.h>

namespace plait {

struct Stoppable : Stream::Work {
  virtual void stop() const noexcept = 0;
};

}  // namespace plait
