// Tiers: a program runs at once on backends that compile at once; those that take longer compile it
// on a thread of their own, and calls that begin afterwards run what they made. The bits are the
// same (design: same numbers), so that no call can tell.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/run.h>

namespace plait::tiers {

// PLAIT_WAIT=1: programs are compiled by every backend before their first call.
bool waits_for_all();

// Makes the better executable.
using Promote = std::function<std::shared_ptr<const Executable>()>;
// Runs on the first until promote, called on the background thread after the second call, has made
// a better one. Where it throws, the first stays, and the log and explain say why.
std::shared_ptr<const Executable> make_tiered(std::shared_ptr<const Executable> first,
                                              Promote promote);

}  // namespace plait::tiers
