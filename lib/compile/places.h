// Programs over a mesh, as what runs in memory: in one process for all places, one after the other;
// in a job of several ranks for the place of this one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

namespace plait::compile_passes {

// The same program, without values that vary along axes of a mesh. In one process each of them is a
// list of values, one for each place, and its inputs and outputs that vary have a leading axis for
// the places; on a rank it is the value of its place. The program itself where nothing varies.
Jaxpr with_places(const Jaxpr& program);

}  // namespace plait::compile_passes
