// How a masked function runs on a batch: examples of about the same sizes together, padded to the
// largest of them instead of to the bounds, so that the work is about that of the real sizes.
//
// NOTE: [groups of sizes] Groups have 1, 4, 16, ... or all examples, and sizes from a coarse scale,
// so that a few programs, compiled on demand, serve every batch. How a batch is cut depends on its
// sizes alone, not on the function: a program and its derivative, apart or in one, do the same
// sums. Most of a function may need no groups: see NOTE: [packed places].
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>
#include <plait/transforms/masked.h>

namespace plait {

// The rows of a batch that run together, and what their sizes are padded to.
struct SizeGroup {
  std::vector<std::int32_t> rows;
  Sizes64 bounds;
  bool operator==(const SizeGroup&) const = default;
};
// sizes: by name, for each example; bounds: what the arrays are padded to.
std::vector<SizeGroup> group_by_size(std::span<const Sizes64> sizes, const Sizes64& bounds);

// Whether this masked equation runs so: one lane of examples that differ in size, enough work for
// it to pay, and no effects. PLAIT_BY_SIZE=always and =never decide instead of the work.
bool runs_by_size(const Equation& equation);
std::unique_ptr<Kernel> compile_by_size(const Jaxpr& group, Device device);

}  // namespace plait
