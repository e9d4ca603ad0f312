// The iteration space of a kernel: which loops, and how every input moves along them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

namespace plait::llvm {

// How an input is read. `packed` is copied to dense memory before the loops, because along the
// innermost one it would be read element by element.
enum class Access { dense, splat, rows, packed };

struct Nest {
  // Sizes from the outside in, neighbours merged where every input allows it. With one loop, inputs
  // are dense, splat or packed; with more, `rows` have a stride for each loop, the last one 0 or 1.
  Sizes64 loops;
  std::vector<Access> access;    // by input
  std::vector<Sizes64> strides;  // by input, of rows: in elements, by loop
  std::int64_t size() const { return num_elements(loops); }
  std::int64_t inner() const { return loops.empty() ? 1 : loops.back(); }
};

// strides: by input, for the shape or empty for a scalar. Innermost loops shorter than
// min_inner are not worth having.
Nest make_nest(const Sizes64& shape, std::span<const Sizes64> strides, std::int64_t min_inner);

// Copies a view to dense memory, by many threads; returns that.
void* pack(const View& view, char* dst);
// The same of places [first, first + count) along an axis, each of so many elements; gives where
// the first of all places would lie.
void* pack_part(const View& view, int axis, std::int64_t first, std::int64_t count,
                std::int64_t elements, char* dst);

}  // namespace plait::llvm
