// The scratch memory of a kernel: its parts follow each other, each where libraries may begin.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compile/arena.h"

namespace plait::cuda {

class Frame {
 public:
  // The offset of so many bytes more.
  std::int64_t add(std::int64_t bytes) {
    const std::int64_t at = bytes_;
    bytes_ += compile_passes::room_on_device(bytes);
    return at;
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_ = 0;
};

}  // namespace plait::cuda
