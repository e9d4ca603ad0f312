// Fibers: stacks that one thread of the CPU changes between.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace on_cpu {

class Fibers {
 public:
  struct Fiber {
    void* stack_pointer = nullptr;
    char* stack = nullptr;
  };
  // Each fiber runs work, which never returns.
  explicit Fibers(void (*work)()) : work_(work) {}

  Fiber* take();  // one that nobody uses, at the start of work or where it called give_back
  void give_back(Fiber* fiber) { idle_.push_back(fiber); }
  void forget();  // all begin anew; nobody uses one
  // Whether the fiber has used more than there is.
  static bool is_full(const Fiber& fiber);

  static void change(Fiber& from, const Fiber& to);

 private:
  void start(Fiber& fiber) const;

  void (*const work_)();
  std::vector<std::unique_ptr<Fiber>> all_;
  std::vector<Fiber*> idle_;
};

}  // namespace on_cpu
