// See gathering.h.
// SPDX-License-Identifier: Apache-2.0
#include "compile/gathering.h"

#include <utility>

namespace plait::compile_passes {
namespace {

// A pointer: what a thread destroys when it ends is registered, and that dies without memory.
thread_local Gathering* outermost = nullptr;

}  // namespace

Gathering::Gathering() {
  if (!outermost) outermost = this;
}

Gathering::~Gathering() {
  if (outermost != this) return;
  outermost = nullptr;
  for (const auto& begin : gathered_) begin();
}

void Gathering::at_end(std::function<void()> begin) {
  if (!outermost) return begin();
  outermost->gathered_.push_back(std::move(begin));
}

}  // namespace plait::compile_passes
