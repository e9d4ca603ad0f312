// Machine code from a module of IR, and its life.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "library.h"

namespace plait::llvm {

// The processor that code is made for: this one, capped by PLAIT_MAX_ISA.
struct Machine {
  std::string triple, cpu, features;
  int vector_bytes = 32;
  bool has_avx512 = false;
  TargetData layout = nullptr;
};

// Prepares the compiler; returns why that failed, or nothing.
std::string start();
const Machine& machine();  // after start

// The function of a compiled module. Its memory is freed with the last holder.
class Code {
 public:
  Code(Tracker tracker, void* address) : tracker_(tracker), address_(address) {}
  ~Code();
  Code(const Code&) = delete;
  template <class F>
  F* as() const {
    return reinterpret_cast<F*>(address_);
  }

 private:
  Tracker tracker_;
  void* address_;
};

// A name for the one function of the next module.
std::string next_name();
// Compiles a module whose function has that name; the module stays the caller's.
std::unique_ptr<const Code> compile_module(Module module, const std::string& name);

}  // namespace plait::llvm
