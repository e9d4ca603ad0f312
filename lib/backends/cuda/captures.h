// Captured work of CUDA streams: graphs. Kernels of plait's own have their parameters set when
// memory changes; where a library's work, or a copy, has other memory, all of it is captured again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/driver.h>

#include "device_state.h"

namespace plait::cuda {

// See Driver. The stream's context is current.
std::unique_ptr<Driver::Captured> capture_work(DeviceState& state, CUstream stream,
                                               const std::function<void()>& give);
bool change_captured(DeviceState& state, CUstream stream, Driver::Captured& captured,
                     const std::function<void()>& give);
void replay_captured(DeviceState& state, CUstream stream, Driver::Captured& captured);

}  // namespace plait::cuda
