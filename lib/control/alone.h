// Whether examples of a batch can run one after the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

#include <vector>

namespace plait {

// Whether a body gives one example, alone, the bits that it gives it among all of them: sums that a
// library or a longer loop takes over for many have others. batched: its binders that are the
// examples' own.
bool is_same_alone(const Jaxpr& body, std::vector<bool> batched, std::int64_t num_examples);

}  // namespace plait
