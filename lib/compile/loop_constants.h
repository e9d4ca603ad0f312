// Loop-invariant values of a running loop, and what kernels of its body derive from them: a matrix
// of weights in the layout that a matrix product prefers, for example.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>

#include <list>

namespace plait::compile_passes {

// A scope of this thread. The memory of the constants outlives it.
class LoopConstants {
 public:
  explicit LoopConstants(std::span<const View> constants);
  ~LoopConstants();
  LoopConstants(const LoopConstants&) = delete;

  // What a kernel derives from a constant. It is freed with the loop.
  struct Derived {
    std::uint64_t kernel;
    const void* constant;
    int asked = 0;  // number of requests, so that a kernel can wait until it pays
    Storage memory;
  };
  // The entry for a constant at this address; nullptr if no loop of this thread has one there.
  // Kernels are identified by numbers, because addresses of freed ones are reused.
  static Derived* find(std::uint64_t kernel, const void* data);
  static std::uint64_t number_of_kernel();  // a new number

 private:
  std::vector<View> constants_;
  std::list<Derived> derived_;
  LoopConstants* const outer_;
};

}  // namespace plait::compile_passes
