// Multiples that tracing finds out: where sizes with names fit only if t % 8 == 0, the trace that
// names t starts again with that known, as if it had been declared (see constraints.h).
//
// What cannot go on asks, then throws its ShapeError: it reaches the user where nobody can help.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/spoken.h>
#include <plait/ir/aval.h>

#include <functional>

namespace plait {

class Constraints;

// Asks for the multiple of one size that lets factor divide dim for all sizes; for nothing where no
// size, or more than one, would do.
void ask_multiple(Dim dim, Dim factor);
// Asks for what makes both equal: that quotients in them, as h//4 and w//4, have no remainders.
void ask_equal(Dim left, Dim right);

// Names of sizes that a trace binds: from those that its user wrote to what they are in the trace,
// t to t' or to 8*t_8.
using SizeNaming = std::vector<std::pair<Dim, Dim>>;

// How errors speak of them.
std::vector<SpokenSize> spoken_sizes(const SizeNaming& naming);

// Calls trace, with more constraints each time, until it ends without asking for a multiple of a
// size in the naming that it makes before it may ask.
void trace_with_multiples(const Constraints& declared,
                          const std::function<void(const Constraints&, SizeNaming&)>& trace);

}  // namespace plait
