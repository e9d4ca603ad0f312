// The loops of a thread, innermost first. See loop_constants.h.
// SPDX-License-Identifier: Apache-2.0
#include "loop_constants.h"

#include <atomic>
#include <utility>

namespace plait::compile_passes {
namespace {

constinit thread_local LoopConstants* innermost = nullptr;

}  // namespace

LoopConstants::LoopConstants(std::span<const View> constants)
    : constants_(constants.begin(), constants.end()), outer_(std::exchange(innermost, this)) {}

LoopConstants::~LoopConstants() { innermost = outer_; }

LoopConstants::Derived* LoopConstants::find(std::uint64_t kernel, const void* data) {
  for (LoopConstants* loop = innermost; loop; loop = loop->outer_) {
    for (Derived& derived : loop->derived_)
      if (derived.kernel == kernel && derived.constant == data) return &derived;
    for (const View& constant : loop->constants_) {
      const char* const begin = static_cast<const char*>(constant.data);
      if (data < begin || data >= begin + constant.size() * size_of(constant.dtype)) continue;
      return &loop->derived_.emplace_back(Derived{kernel, data, 0, {}});
    }
  }
  return nullptr;
}

std::uint64_t LoopConstants::number_of_kernel() {
  static constinit std::atomic<std::uint64_t> number{0};
  return number.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace plait::compile_passes
