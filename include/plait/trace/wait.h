// Waiting for generated loops: see NOTE: [tiers].
//
//   auto step = plait::jit(f, {.wait = true});   // compiled by every backend before its first run
//   step.compile_for(state, batch);              // now, without running it
//   const plait::Waiting waiting;                // whatever this thread calls
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

namespace plait {

// While it lives, whatever this thread calls or compiles for the first time is compiled by every
// backend before it runs, instead of running without generated loops until they are ready.
// PLAIT_WAIT=1 does the same for all threads.
class Waiting {
 public:
  Waiting();
  ~Waiting();
  Waiting(const Waiting&) = delete;
  static bool is_on();  // on this thread

 private:
  const bool outer_;
};

namespace detail {
// Compiles the programs that function calls on such inputs, by every backend.
void compile_calls(const Function& function, std::span<const Array> inputs);
}  // namespace detail

// Compiles the programs of all calls in a program. Set by lib/compile when the library is loaded.
using CallCompiler = void (*)(const Jaxpr& program);
void set_call_compiler(CallCompiler compiler);

}  // namespace plait
