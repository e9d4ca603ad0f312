// How the host asks the kernels of a call to stop, on a device: by the last one of the values where
// they leave word of a failure. Kernels with loops whose end is not known look at it now and then.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/run/kernel.h>

#include <atomic>
#include <iterator>

namespace plait {

inline void ask_to_stop(Failure& word) noexcept {
  std::atomic_ref(word.values[std::size(word.values) - 1]).store(1, std::memory_order_release);
}

}  // namespace plait
