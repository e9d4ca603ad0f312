// What is known of a device while the process lives, made when the device is first used.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/device.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "api.h"
#include "memory.h"

namespace plait::cuda {

struct DeviceState {
  Device device;
  CUdevice handle = 0;
  CUcontext context = nullptr;
  CUmemoryPool pool = nullptr;           // plait's own
  std::unique_ptr<DeviceMemory> memory;  // in front of it
  std::string architecture;              // "sm_90"
  bool has_stream_words = false;         // streams write and await words of memory
  std::atomic<bool> is_lost{false};
  std::mutex capture_mutex;  // of the stream that captures; made when one first does
  CUstream capture_stream = nullptr;

  // Like check; a failure that cannot be undone is remembered.
  void require(CUresult result, const char* action) {
    if (result != CUDA_SUCCESS) [[unlikely]]
      fail(result, action);
  }
  // Calls what takes memory of the device by itself. Where there is none left, what is kept is
  // given back, and it is called once more. MemoryError where there is still none.
  void require_memory(const std::function<CUresult()>& call, const char* action);
  void note(CUresult result, const char* action) noexcept;  // remembers, and does not throw
  [[noreturn]] void fail(CUresult result, const char* action);
};

// BackendError in the child of a fork, and where the device cannot be used.
DeviceState& state_of(Device device);
// Without using the device: null where it has not been used yet.
DeviceState* state_if_used(Device device);

}  // namespace plait::cuda
