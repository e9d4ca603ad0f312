// Machine code in the memory of devices. Equal texts are compiled, and loaded on a device, once,
// while anything uses them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/device.h>

#include <memory>
#include <string>

#include "api.h"

namespace plait::cuda {

class Module {
 public:
  Module(Device device, const std::string& source);
  ~Module();
  Module(const Module&) = delete;
  CUfunction function(const std::string& name) const;

 private:
  const Device device_;
  CUmodule module_ = nullptr;
};

// A module that another thread may still be compiling.
class SharedModule {
 public:
  SharedModule(Device device, std::string source);
  // Waits until it is there, and throws what its compilation has thrown.
  const Module& get() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace plait::cuda
