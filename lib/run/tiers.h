// NOTE: [tiers] A program runs at once on backends that compile at once; those that take longer
// compile it on a thread of their own, and calls that begin afterwards run what they made. The bits
// are the same (design: same numbers), so that no call can tell. A loop changes over between
// iterations.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/run.h>
#include <plait/wait.h>

namespace plait::tiers {

// Whether programs are compiled by every backend before their first call: see wait.h.
bool is_waiting();

// Makes the better executable.
using Promote = std::function<std::shared_ptr<const Executable>()>;
// Runs on the first until promote, called on the background thread after so many calls, has made a
// better one. Where it throws, the first stays, and the log and explain say why.
std::shared_ptr<const Executable> make_tiered(std::shared_ptr<const Executable> first,
                                              Promote promote, int calls);
// One that stays on its first tier, because the better one could not be made for this reason.
std::shared_ptr<const Executable> make_failed(std::shared_ptr<const Executable> first,
                                              const std::string& reason);
// Makes the better executable now, where there is to be one.
void finish(const Executable& executable);
// What a call would run.
const Executable& current(const Executable& executable);

// On the background thread, where no lock is held: lets a fork pass, and ends the work when the
// process ends. Elsewhere nothing.
void breathe();

}  // namespace plait::tiers
