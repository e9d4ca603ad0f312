// Multiples that tracing discovers. Where named sizes fit only if t % 8 == 0, the trace that names
// t restarts with that known, as if it had been declared (see constraints.h).
//
// Code that cannot continue asks for the multiple, then throws its ShapeError, which reaches the
// user if no trace can restart.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/size_multiples.h>
#include <plait/ir/aval.h>

#include <functional>

namespace plait {

class Constraints;

// Asks for the multiple of one size that lets factor divide dim for all sizes. Does nothing where
// no size, or more than one, would do.
void ask_multiple(Dim dim, Dim factor);
// Asks for what makes both equal: that quotients in them, such as h//4 and w//4, have no remainder.
void ask_equal(Dim left, Dim right);

// The names of the sizes that a trace binds: from the user's size to its form in the trace, t to t'
// or to 8*t_8.
using SizeNaming = std::vector<std::pair<Dim, Dim>>;

// How errors write them.
std::vector<SizeMultiple> size_multiples(const SizeNaming& naming);

// Calls trace, with more constraints each time, until it ends without asking for a multiple of a
// size in the naming, which trace makes before it may ask.
void trace_with_multiples(const Constraints& declared,
                          const std::function<void(const Constraints&, SizeNaming&)>& trace);

}  // namespace plait
