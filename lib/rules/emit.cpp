// Parts of arrays in loop programs. See emit.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/emit.h>

#include <algorithm>

namespace plait::loops {

std::vector<Formula::Read> Writer::reads_of(const Tensor& tensor) {
  if (tensor.is_in_memory()) return {{tensor.place, tensor.strides}};
  return tensor.formula ? tensor.formula->reads : std::vector<Formula::Read>{};
}

// Terms are in the order of their indices, and none has the stride 0, so that equal places compare
// equal.
void add_index(Place& place, const Index& index, std::int64_t stride) {
  place.offset += index.offset * stride;
  if (stride == 0) return;
  for (const Place::Term& term : index.terms) {
    const auto at =
        std::lower_bound(place.terms.begin(), place.terms.end(), term.index,
                         [](const Place::Term& other, Value value) { return other.index < value; });
    const std::int64_t by = term.stride * stride;
    if (at == place.terms.end() || at->index != term.index)
      place.terms.insert(at, {term.index, by});
    else if ((at->stride += by) == 0)
      place.terms.erase(at);
  }
}

Tensor window(const Tensor& tensor, std::span<const Value> starts, const Shape& shape) {
  Tensor part = tensor;
  part.aval.shape = shape;
  for (std::size_t axis = 0; axis < starts.size(); ++axis)
    add_index(part.place, {0, {{starts[axis], 1}}}, tensor.strides[axis]);
  return part;
}

Tensor slice_at(const Tensor& tensor, Value index) {
  Tensor slice = tensor;
  slice.aval.shape.erase(0);
  slice.strides.erase(0);
  add_index(slice.place, {0, {{index, 1}}}, tensor.strides[0]);
  return slice;
}

Tensor merged(Writer& writer, const Tensor& tensor, std::span<const int> axes) {
  Tensor one = tensor;
  std::vector<int> long_axes;
  for (int axis : axes)
    if (tensor.aval.shape[axis].constant() != 1) long_axes.push_back(axis);
  if (long_axes.size() < 2 && (long_axes.empty() || long_axes[0] == axes.back())) return one;
  if (!one.is_in_memory()) one = writer.in_memory(one);
  const auto size = [&](int axis) { return tensor.aval.shape[axis].constant(); };
  for (std::size_t i = 0; i + 1 < long_axes.size(); ++i) {
    const auto outer = std::size_t(long_axes[i]), inner = std::size_t(long_axes[i + 1]);
    if (one.strides[outer] == one.strides[inner] * size(long_axes[i + 1])) continue;
    const Tensor dense = writer.make(tensor.aval);
    writer.copy(tensor, dense);
    one = dense;
    break;
  }
  std::int64_t count = 1;
  for (int axis : axes) {
    count *= size(axis);
    one.aval.shape[axis] = 1;
  }
  one.strides[std::size_t(axes.back())] =
      long_axes.empty() ? 0 : one.strides[std::size_t(long_axes.back())];
  one.aval.shape[axes.back()] = count;
  return one;
}

}  // namespace plait::loops
