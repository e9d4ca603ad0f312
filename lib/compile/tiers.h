// NOTE: [tiers] A program runs at once on backends that compile at once. Slower backends compile it
// on a background thread, once it has run for as long as that takes. Later calls run the result. It
// gives the same bits, so no call can tell.
//
// A single call may spend all its time in one loop. The programs of the loop's bodies change tiers
// between iterations. Where slow backends make one kernel of the whole loop, it depends: a loop
// with a known, large number of steps is compiled before it runs. A loop of unknown length (while)
// runs step by step for as long as compilation takes, is then compiled, and continues from there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/compile.h>
#include <plait/trace/wait.h>

#include <chrono>

namespace plait::tiers {

// Whether every backend compiles a program before its first call: see wait.h.
bool is_waiting();

// When a better executable pays: after this many calls, or once they have taken this long together.
struct Worth {
  int calls;
  std::chrono::nanoseconds time;
};

// A rough estimate of the time that slow backends take to compile a program.
std::chrono::nanoseconds compilation_time(std::size_t num_equations);

// A scope in which kernels that this thread makes are a program's first tier. The backends `slow`
// make the next one.
class FirstTier {
 public:
  explicit FirstTier(std::span<const Backend* const> slow);
  ~FirstTier();
  FirstTier(const FirstTier&) = delete;
  // Empty outside of any scope.
  static std::span<const Backend* const> slow_backends();

 private:
  const std::span<const Backend* const> outer_;
};

// Makes the better executable.
using Promote = std::function<std::shared_ptr<const Executable>()>;
// Runs `first` until a better executable exists. promote makes it, on the background thread and
// when it pays. If promote throws, `first` stays, and the log and explain say why.
std::shared_ptr<const Executable> make_tiered(std::shared_ptr<const Executable> first,
                                              Promote promote, Worth worth);
// An executable that stays on its first tier, because the better one could not be made.
std::shared_ptr<const Executable> make_failed(std::shared_ptr<const Executable> first,
                                              const std::string& reason);
// Makes the better executable now, if there is to be one.
void finish(const Executable& executable);

// On the background thread, where it holds no lock: lets a fork pass, and stops the work when the
// process ends. On other threads it does nothing.
void breathe();

}  // namespace plait::tiers
