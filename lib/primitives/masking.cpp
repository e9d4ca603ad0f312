// Shared by Mask rules: the positions of the real elements of a padded array, and replacement of
// its padding. See rules.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>
#include <plait/rules/rules.h>

namespace plait {

std::optional<Array> validity(const Shape& shape, const SizeValues& sizes) {
  Shape bounds;
  for (Dim dim : shape) bounds.push_back(sizes.bound(dim));
  std::optional<Array> valid;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == bounds[axis]) continue;  // not ragged
    // Compared along its own axis only, because under vmap the value has a batch axis.
    const Array position = lax::iota(DType::int32, {bounds[axis]}, 0);
    const Array real = lax::lt(position, sizes.value(shape[axis]));
    const int dims[] = {axis};
    const Array spread = lax::broadcast_in_dim(real, bounds, dims);
    valid = valid ? lax::bitwise_and(*valid, spread) : spread;
  }
  return valid;
}

Array fill_padding(const Masked& value, const Array& fill, const SizeValues& sizes,
                   std::span<const int> axes) {
  Shape shape = value.padded.shape();  // ragged along these axes only
  for (int axis : axes) shape[axis] = value.aval.shape[axis];
  const std::optional<Array> valid = validity(shape, sizes);
  return valid ? lax::select(*valid, value.padded, fill) : value.padded;
}

Array fill_padding(const Masked& value, const Array& fill, const SizeValues& sizes) {
  std::vector<int> axes(value.aval.rank());
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = int(i);
  return fill_padding(value, fill, sizes, axes);
}

}  // namespace plait
