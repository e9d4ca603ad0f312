// Machine code in the memory of devices. Equal texts are compiled, and loaded on a device, once,
// while anything uses them.
//
// The texts of an executable are gathered (compile/gathering.h) and compiled by other threads, as
// few programs (compiler.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/device.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api.h"

namespace plait::cuda {

// The kernels of one text.
class Module {
 public:
  CUfunction function(const std::string& name) const;

 private:
  friend class SharedModule;
  class Loaded;
  Module(std::shared_ptr<const Loaded> loaded, std::string ending)
      : loaded_(std::move(loaded)), ending_(std::move(ending)) {}
  const std::shared_ptr<const Loaded> loaded_;
  const std::string ending_;  // of names
};

// A module that another thread may still be compiling.
class SharedModule {
 public:
  SharedModule(Device device, std::string source);
  // Waits until it is there, and throws what its compilation has thrown.
  const Module& get() const;

 private:
  struct State;
  using States = std::vector<std::shared_ptr<State>>;
  static void begin(States states);
  static void compile_all(const States& states);
  static void compile_program(const States& states);
  std::shared_ptr<State> state_;
};

}  // namespace plait::cuda
