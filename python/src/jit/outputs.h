// Small outputs of a compiled function are written to arrays that an earlier call made and nobody
// holds any more: allocating an array costs more than most kernels that fill one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/compile.h>
#include <plait/trace/array.h>

#include <array>

namespace plait::python {

// Needs the GIL. Its arrays are seen by nobody else while they are spare.
class SpareOutputs {
 public:
  // Whether outputs of these types are few and small enough to be kept.
  static bool can_keep(std::span<const Aval> avals);
  // Arrays of these types, the same at every call, for a call to write to.
  Arrays take(std::span<const Aval> avals);

 private:
  // A loop whose state is its last outputs writes to one while it reads the other.
  std::array<Arrays, 2> sets_;
};

}  // namespace plait::python
