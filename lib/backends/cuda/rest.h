// What is left to do of a group behind a call of a library: generated loops that read its result.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

namespace plait::cuda {

class Rest {
 public:
  // done: the equations that the call computes, the first one aside; result: what it leaves.
  Rest(const Jaxpr& group, std::span<const Sizes64> strides, Var result, std::span<const int> done,
       Device device);
  bool is_empty() const { return kernel_ == nullptr; }
  // Where the result is written if something is left, without memory.
  const View& between() const { return between_; }
  std::int64_t bytes_between() const {
    return between_.size() * std::int64_t(size_of(between_.dtype));
  }
  std::int64_t scratch_bytes() const { return kernel_->scratch_bytes(); }
  // inputs and outputs: the group's.
  void enqueue(std::span<const View> inputs, void* between, std::span<const View> outputs,
               void* scratch, const Launch& launch) const;
  const Kernel& kernel() const { return *kernel_; }

 private:
  View between_;
  std::vector<int> inputs_;  // of the group; -1: the result of the call
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace plait::cuda
