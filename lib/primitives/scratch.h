// Uninitialised memory for a kernel, from the caching allocator, because kernels are often
// repeated.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/allocator.h>

#include <cstdint>

namespace plait {

template <class T>
class Scratch {
 public:
  explicit Scratch(std::int64_t count)
      : storage_(Storage::allocate(std::size_t(count) * sizeof(T))) {}
  T* get() const { return static_cast<T*>(storage_.data()); }

 private:
  Storage storage_;
};

}  // namespace plait
