// What waits until all kernels of an executable are known. None of them is called before, so that
// backends may compile several at once (Backend::compile says only that one is wanted).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

namespace plait::compile_passes {

// While it lives, this thread makes the kernels of an executable, and of those within it.
class Gathering {
 public:
  Gathering();
  // The outermost one of a thread begins what was gathered.
  ~Gathering();
  Gathering(const Gathering&) = delete;

  // Calls it when the outermost one of this thread ends; at once where there is none. It does not
  // throw.
  static void at_end(std::function<void()> begin);

 private:
  std::vector<std::function<void()>> gathered_;  // of the outermost one
};

}  // namespace plait::compile_passes
