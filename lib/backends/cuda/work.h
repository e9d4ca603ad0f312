// How work is given to streams: by these functions alone, which run it, or make it part of what
// this thread captures (captures.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "api.h"

namespace plait::cuda {

struct LaunchShape {
  unsigned blocks = 1, threads = 1;
  unsigned shared_bytes = 0;    // dynamic
  bool is_cooperative = false;  // its blocks wait for each other: all are there at once
  bool operator==(const LaunchShape&) const = default;
};

// values: the parameters; a parameter of fewer than 8 bytes lies in the first of them.
CUresult launch(CUstream stream, CUfunction function, const LaunchShape& shape,
                std::span<const std::uint64_t> values);
CUresult clear(CUstream stream, CUdeviceptr data, std::size_t bytes);
CUresult copy_bytes(CUstream stream, CUdeviceptr to, CUdeviceptr from, std::size_t bytes);
// A call of a library. It gives the stream that it is called with the same work whenever operands,
// all memory that the work touches, are the same.
void give_library(CUstream stream, std::span<const void* const> operands,
                  const std::function<void(CUstream)>& call);

inline std::uint64_t value_of(const void* data) {
  return std::uint64_t(reinterpret_cast<std::uintptr_t>(data));
}

}  // namespace plait::cuda
