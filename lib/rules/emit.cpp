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
  std::vector<int> long_axes;
  for (int axis : axes)
    if (tensor.aval.shape[axis].constant() != 1) long_axes.push_back(axis);
  if (long_axes.size() < 2 && (long_axes.empty() || long_axes[0] == axes.back())) return tensor;
  const auto from = std::size_t(long_axes.back()), to = std::size_t(axes.back());
  Aval aval = tensor.aval;
  std::int64_t count = 1;
  for (int axis : axes) {
    count *= aval.shape[axis].constant();
    aval.shape[axis] = 1;
  }
  aval.shape[axes.back()] = count;
  const auto goes_on = [&](const Sizes64& strides) {
    for (std::size_t i = 0; i + 1 < long_axes.size(); ++i)
      if (strides[std::size_t(long_axes[i])] !=
          strides[std::size_t(long_axes[i + 1])] * tensor.aval.shape[long_axes[i + 1]].constant())
        return false;
    return true;
  };
  const auto strides_of = [&](Sizes64 strides) {
    strides[to] = strides[from];
    return strides;
  };
  const auto& given = tensor.formula;
  if (given && (long_axes.size() == 1 ||
                (given->is_by_reads && std::all_of(given->reads.begin(), given->reads.end(),
                                                   [&](const Formula::Read& read) {
                                                     return !read.is_anywhere &&
                                                            goes_on(read.strides);
                                                   })))) {
    Formula formula{*given};
    formula.cuts.clear();
    for (Formula::Read& read : formula.reads)
      if (!read.is_anywhere) read.strides = strides_of(std::move(read.strides));
    formula.element = [&writer, tensor, from, to](std::span<const Index> indices) {
      Indices at(indices.begin(), indices.end());
      std::swap(at[from], at[to]);
      return writer.element(tensor, at);
    };
    return writer.computed(aval, std::move(formula));
  }
  Tensor one = writer.in_memory(tensor);
  if (!goes_on(one.strides)) {
    one = writer.make(tensor.aval);
    writer.copy(tensor, one);
  }
  one.strides = strides_of(std::move(one.strides));
  one.aval = aval;
  return one;
}

}  // namespace plait::loops
