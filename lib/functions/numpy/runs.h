// Runs of equal elements in sorted arrays.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/array.h>

namespace plait::functions {

// The rows of an array, each in the place of the next one; zeros first.
Array shifted_by_one(const Array& rows);
// Whether a run begins at each place: the first one, and where an element differs from the one
// before.
Array starts_of_runs(const Array& differs);

}  // namespace plait::functions
