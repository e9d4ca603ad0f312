// What the stand-in's driver gives to stand-ins of libraries that submit work of their own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "backends/cuda/api.h"

extern "C" {
int standin_current_device();  // of the current context; -1: none
// Gives work to a stream of the current context, or to what it captures.
plait::cuda::CUresult standin_submit(plait::cuda::CUstream stream, std::function<void()> work);
// During such work: where the memory of an address lies; nullptr, and a device that is lost, unless
// all of it lies in one block that is there.
void* standin_memory(int device, std::uint64_t address, std::size_t bytes, const char* whose);
}
