// Small outputs of a compiled function are written to arrays of an earlier call that nobody holds
// any more: allocating an array costs more than most kernels that fill one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/compile.h>
#include <plait/trace/array.h>

#include <array>

namespace plait::python {

// Needs the GIL. Nobody else sees its arrays while they are spare.
class SpareOutputs {
 public:
  // Whether outputs of these types are few and small enough to be kept.
  static bool can_keep(std::span<const Aval> avals);
  // Arrays of these types for a call to write to. The types are the same at every call.
  Arrays take(std::span<const Aval> avals);

 private:
  // Two, because a loop whose state is its last outputs writes to one while it reads the other.
  std::array<Arrays, 2> sets_;
};

}  // namespace plait::python
