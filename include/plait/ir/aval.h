// The type of a value in a program: shape, dtype, and whether the dtype is weak (came from Python
// or C++ scalars alone, and yields to any strong dtype of its category). The only type a var has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dtype.h>
#include <plait/base/shape.h>
#include <plait/ir/mesh_axes.h>

namespace plait {

// What is known of a value before it runs: shape, dtype, and whether the dtype is weak.
//
// A stack holds one array for each step of a loop whose number of steps is not known: the residuals
// that reverse mode keeps. shape and dtype are those of one element. A stack of depth 2 holds
// stacks.
struct Aval {
  Shape shape;
  DType dtype = DType::float32;
  bool weak = false;
  std::uint8_t stack = 0;  // depth; 0 for an array
  MeshAxes varying = {};   // the axes of a mesh along which each place has a value of its own

  int rank() const { return shape.rank(); }
  std::string to_string() const;  // "f32[3,n]"; weak "f32[]*"; "stack[f32[3]]"; "f32[3]{x:4}"
  std::size_t hash() const;
  bool operator==(const Aval&) const = default;
  WeakDType type() const { return {dtype, weak}; }
};

// The aval of what is in memory for a value: itself, with the carrier of a stored dtype, or the
// bytes of a stack's handle (base/stack.h).
Aval in_memory(const Aval& aval);

}  // namespace plait
