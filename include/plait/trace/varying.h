// Values that vary along axes of a mesh: each place has its own. What all places have the same is
// invariant along an axis.
//
// An operation on both kinds varies: bind makes its invariant operands vary, by the primitive
// pvary, whose cotangent is the sum over the places. So the gradient of what all places share is
// the sum of what each of them gives back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/array.h>

namespace plait {

// The same value, as one that varies along these axes too. The primitive pvary provides it.
using Varier = Array (*)(const Array& array, MeshAxes axes);
extern Varier make_varying;
inline Array varying_along(const Array& array, MeshAxes axes) {
  const MeshAxes missing = axes.without(array.aval().varying);
  return missing.empty() ? array : make_varying(array, missing);
}

// Along which axes any of these varies.
MeshAxes varying_of(std::span<const Array> arrays);

}  // namespace plait
