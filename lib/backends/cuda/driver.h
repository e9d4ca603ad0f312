// CUDA devices for plait: the driver of the kind "cuda" (plait/base/driver.h), and what kernels ask
// of it.
//
// A device is used through its primary context, which other libraries of the process use too. It is
// current only during calls: what was current before is so again. Memory comes from a pool of
// plait's own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/stream.h>

#include <cstdint>
#include <string>

#include "api.h"

namespace plait::cuda {

// Registers the kind where a driver and a device exist, or says why there is none. Once.
bool register_cuda_driver();
bool is_cuda(Device device);

// Makes the context of a device current in this thread while it lives. BackendError in the child of
// a fork, which must not touch what its parent has, and where the device cannot be used.
class CurrentContext {
 public:
  explicit CurrentContext(Device device);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  bool is_pushed_ = false;
};
// Whether this process is the child of one that had CUDA: then nothing can be used or freed.
bool is_forked();

CUstream stream_of(const Stream& stream);
std::string architecture_of(Device device);  // "sm_90"
// By CU_DEVICE_ATTRIBUTE_...
int attribute_of(Device device, int attribute);

}  // namespace plait::cuda
