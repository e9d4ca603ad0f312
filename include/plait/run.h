// Running: compiled jaxprs as executables, and the evaluator behind eager calls.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

namespace plait {

// A compiled jaxpr: immutable, safe to call from many threads, never touches Python.
class Executable {
 public:
  virtual ~Executable() = default;
  virtual std::vector<Buffer> run(std::span<const Buffer> inputs) const = 0;
  // Bytes of the arena that one call takes, besides inputs and outputs.
  virtual std::int64_t arena_bytes() const = 0;
  // One line an equation: where it runs and why not elsewhere.
  virtual std::string explain() const = 0;
};

// Compiles a jaxpr without named sizes; memoised on the jaxpr.
std::shared_ptr<const Executable> compile(const Jaxpr& jaxpr);

}  // namespace plait
