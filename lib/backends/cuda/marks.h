// A stream of a device, and the marks behind its work: a word of host memory, which the stream
// writes and other streams await. Devices without such operations have an event for each mark.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>

#include "device_state.h"

namespace plait::cuda {

// Never destroyed, as streams of plait are not.
class MarkedStream {
 public:
  explicit MarkedStream(DeviceState& state);

  DeviceState& state() const { return state_; }
  CUstream stream() const { return stream_; }
  KeptBlocks& kept_blocks() { return kept_blocks_; }
  void mark(std::uint64_t number);
  // All, where the device is lost: nothing that is waited for comes any more.
  std::uint64_t reached();
  // Throws what the device has failed with, once.
  bool wait(std::uint64_t number, std::chrono::milliseconds most);
  // What a stream of a device is given from now on waits until the mark is reached; the context of
  // that device is current.
  void order(CUstream later, const DeviceState& where, std::uint64_t number);

 private:
  CUdeviceptr word() const { return CUdeviceptr(reinterpret_cast<std::uintptr_t>(word_)); }
  bool poll();  // false: there is work left; throws what has failed

  DeviceState& state_;
  CUstream stream_ = nullptr;
  KeptBlocks kept_blocks_;
  std::uint64_t* word_ = nullptr;  // that the stream writes
  struct Event {
    std::uint64_t number;
    CUevent event;
  };
  std::mutex mutex_;
  std::deque<Event> events_;  // of marks that are not reached
  std::uint64_t past_ = 0;    // the last mark whose event was reached
};

// later waits for what the other stream was given by now; the context of later's device is current,
// and streams of other devices have contexts of their own.
void order_behind(CUstream later, CUstream stream, DeviceState& state);

}  // namespace plait::cuda
