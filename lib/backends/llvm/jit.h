// Machine code from modules of IR, made once for each description: what lives already in this
// process is shared, what an earlier process kept on disk is read, the rest is compiled.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "library.h"
#include "object.h"

namespace plait::llvm {

// The processor that code is made for: this one, capped by PLAIT_MAX_ISA.
struct Machine {
  bool has_avx512 = false;
  int vector_bytes = 32;
};
const Machine& machine();

// Code that a description stands for. The text must say all that decides what write makes, besides
// the machine and the versions of plait and LLVM; one write runs at a time. BackendError where
// libLLVM is needed and missing.
std::shared_ptr<const Code> make_code(const std::string& description,
                                      const std::function<Object()>& write);

// Loads libLLVM and prepares it, at the first call. BackendError where it cannot be used.
void require_compiler();
bool is_compiler_missing();  // known after a call of require_compiler

// Of the compiler, for modules: after require_compiler.
struct ModuleTarget {
  std::string triple;
  TargetData layout = nullptr;
};
const ModuleTarget& module_target();
// Compiles a module whose one function for others is kernel_name, within write; the module stays
// the caller's.
Object compile_module(Module module);

}  // namespace plait::llvm
