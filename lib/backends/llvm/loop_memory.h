// Memory that a loop reads and writes element by element, for the examples in the lanes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "small.h"

namespace plait::llvm {

// Which lanes hold an example. mask is nullptr where all do.
struct Examples {
  Value first;           // the number of the one in the first lane
  Value mask = nullptr;  // of all lanes
};

// An array in memory. Strides are in elements, by axis.
class LoopMemory {
 public:
  LoopMemory() = default;
  // Of everyone: data points to the whole array.
  LoopMemory(DType dtype, Sizes64 shape, Sizes64 strides, int axis, Value data,
             const Examples& examples);
  // In the function's frame: of the examples in the lanes alone.
  LoopMemory(const Aval& aval, int axis);

  // Its part at this place of the first axis.
  LoopMemory at(Value place) const;
  // A part of this shape that begins so many elements behind its first one.
  LoopMemory window(Value offset, const Sizes64& shape) const;
  const Sizes64& shape() const { return shape_; }
  const Sizes64& strides() const { return strides_; }
  Small load() const;
  // What is the same for all examples is written for those in the first lanes alone.
  void store(const Small& value) const;

 private:
  Value address(const Sizes64& index) const;
  Value addresses(Value first) const;
  Value all_lanes() const;
  Register load_element(Value address) const;
  void store_element(const Register& value, Value address) const;
  std::int64_t lane_stride() const { return axis_ < 0 ? 0 : strides_[axis_]; }

  DType dtype_ = DType::float32;
  Sizes64 shape_, strides_;
  int axis_ = -1;
  Value data_ = nullptr;  // of the example in the first lane
  Examples examples_;
  bool is_frame_ = false;
};

}  // namespace plait::llvm
