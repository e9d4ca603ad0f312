// Parts of arrays in loop programs. See emit.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/emit.h>

namespace plait::loops {

Tensor window(const Tensor& tensor, std::span<const Value> starts, const Shape& shape) {
  Tensor part = tensor;
  part.aval.shape = shape;
  for (std::size_t axis = 0; axis < starts.size(); ++axis)
    if (tensor.strides[axis] != 0) part.place.terms.push_back({starts[axis], tensor.strides[axis]});
  return part;
}

Tensor slice_at(const Tensor& tensor, Value index) {
  Tensor slice = tensor;
  slice.aval.shape.erase(0);
  slice.strides.erase(0);
  if (tensor.strides[0] != 0) slice.place.terms.push_back({index, tensor.strides[0]});
  return slice;
}

}  // namespace plait::loops
