// See gathering.h.
// SPDX-License-Identifier: Apache-2.0
#include "compile/gathering.h"

#include <utility>
#include <vector>

namespace plait::compile_passes {
namespace {

thread_local int depth = 0;
thread_local std::vector<std::function<void()>> gathered;

}  // namespace

Gathering::Gathering() { ++depth; }

Gathering::~Gathering() {
  if (--depth > 0) return;
  for (const auto& begin : std::exchange(gathered, {})) begin();
}

void Gathering::at_end(std::function<void()> begin) {
  if (depth == 0) return begin();
  gathered.push_back(std::move(begin));
}

}  // namespace plait::compile_passes
