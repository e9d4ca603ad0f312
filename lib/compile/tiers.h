// NOTE: [tiers] A program runs at once on backends that compile at once; those that take longer
// compile it on a thread of their own once it has run for as long as that takes, and calls that
// begin afterwards run what they made. The bits are the same (design: same numbers), so that no
// call can tell.
//
// One call may be all that there is of a loop. The programs of its bodies change over between
// iterations. Where slow backends make one kernel of the whole loop, it depends: a loop whose
// number of steps is known to be large is compiled before it runs, and one of unknown length
// (while) runs step by step for as long as compiling it takes, then is compiled, and goes on from
// there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/compile.h>
#include <plait/trace/wait.h>

#include <chrono>

namespace plait::tiers {

// Whether programs are compiled by every backend before their first call: see wait.h.
bool is_waiting();

// When a better executable pays: after so many calls, or when they have taken so long together.
struct Worth {
  int calls;
  std::chrono::nanoseconds time;
};

// How long slow backends take to compile a program, roughly.
std::chrono::nanoseconds compilation_time(std::size_t num_equations);

// While one lives, kernels that are made on this thread are a program's first tier: `slow` make the
// next one.
class FirstTier {
 public:
  explicit FirstTier(std::span<const Backend* const> slow);
  ~FirstTier();
  FirstTier(const FirstTier&) = delete;
  // None outside.
  static std::span<const Backend* const> slow_backends();

 private:
  const std::span<const Backend* const> outer_;
};

// Makes the better executable.
using Promote = std::function<std::shared_ptr<const Executable>()>;
// Runs on the first until promote, called on the background thread when it pays, has made a better
// one. Where it throws, the first stays, and the log and explain say why.
std::shared_ptr<const Executable> make_tiered(std::shared_ptr<const Executable> first,
                                              Promote promote, Worth worth);
// One that stays on its first tier, because the better one could not be made for this reason.
std::shared_ptr<const Executable> make_failed(std::shared_ptr<const Executable> first,
                                              const std::string& reason);
// Makes the better executable now, where there is to be one.
void finish(const Executable& executable);

// On the background thread, where no lock is held: lets a fork pass, and ends the work when the
// process ends. Elsewhere nothing.
void breathe();

}  // namespace plait::tiers
