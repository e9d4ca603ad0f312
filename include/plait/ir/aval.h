// The type of a value in a program: shape, dtype, and whether the dtype is weak (came from Python
// or C++ scalars alone, and yields to any strong dtype of its category). The only type a var has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dtype.h>
#include <plait/base/shape.h>

namespace plait {

struct Aval {
  Shape shape;
  DType dtype = DType::float32;
  bool weak = false;

  int rank() const { return shape.rank(); }
  std::string to_string() const;  // "f32[3,n]"; a weak one ends in "*"
  std::size_t hash() const;
  bool operator==(const Aval&) const = default;
  WeakDType type() const { return {dtype, weak}; }
};

}  // namespace plait
