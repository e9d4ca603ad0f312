// What stays the same while a loop runs, and what kernels of its body have made of it: a matrix of
// weights in the layout that a product likes best, say.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>

#include <list>

namespace plait::compile_passes {

// On this thread, from when it is made until it ends, which is as long as the memory stays.
class LoopConstants {
 public:
  explicit LoopConstants(std::span<const View> constants);
  ~LoopConstants();
  LoopConstants(const LoopConstants&) = delete;

  // What a kernel makes of a constant. It is freed with the loop.
  struct Derived {
    std::uint64_t kernel;
    const void* constant;
    int asked = 0;  // times; so that a kernel can wait until it is worth it
    Storage memory;
  };
  // Of a constant that lies at data; nullptr where no loop of this thread has one there. Kernels
  // are told apart by numbers, because another one may be made where one was freed.
  static Derived* find(std::uint64_t kernel, const void* data);
  static std::uint64_t number_of_kernel();  // a new one

 private:
  std::vector<View> constants_;
  std::list<Derived> derived_;
  LoopConstants* const outer_;
};

}  // namespace plait::compile_passes
