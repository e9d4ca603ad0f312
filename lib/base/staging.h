// Host memory that a device copies from and to. Making such memory is slow on most devices, so that
// small blocks are kept and handed out again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/device.h>
#include <plait/base/stream.h>

#include <cstddef>

namespace plait {

// A block that lives until the work that uses it is done: Stream::keep.
class Staging final : public Stream::Work {
 public:
  // Blocks up to this size are kept for the next: memory that a device copies takes long to get,
  // and to give it back, devices may wait.
  static constexpr std::size_t largest_kept = std::size_t{1} << 25;
  Staging(Device device, std::size_t bytes);  // MemoryError
  ~Staging() override;
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  void* data() const { return data_; }

 private:
  const Device device_;
  const std::size_t bytes_;  // of the block
  void* data_;
};

}  // namespace plait
