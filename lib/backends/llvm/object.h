// Object files in memory: a kernel's code without a linker, so that what an earlier process
// compiled runs in one that never loads libLLVM.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace plait::llvm {

// What a module was compiled to: a function named kernel_name, those that it hands on, and what
// they call.
struct Object {
  std::string bytes;        // a relocatable ELF file
  bool is_portable = true;  // whether other processes of the same build may run it
};

inline constexpr const char* kernel_name = "plait_kernel";

// Whether the library, or this module of it, holds a function: what others hold, another process
// may have in another version.
bool is_in_plait(const void* function);
// A text that changes when plait's libraries are built from other sources.
const std::string& build_identity();

// The function of an object file, in memory that can be run and not written. Freed with the last
// holder.
class Code {
 public:
  explicit Code(const Object& object);  // BackendError where it is not such a file
  ~Code();
  Code(const Code&) = delete;
  template <class F>
  F* as() const {
    return reinterpret_cast<F*>(entry_);
  }

 private:
  char* memory_ = nullptr;
  std::size_t size_ = 0;
  char* entry_ = nullptr;
};

}  // namespace plait::llvm
