// Lists by primitive, indexed by its number: how rewrites find what may start at an equation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/primitive.h>

#include <span>
#include <utility>
#include <vector>

namespace plait {

template <class T>
class ByPrimitive {
 public:
  void add(const Primitive& primitive, T value) {
    const auto index = std::size_t(primitive.index());
    if (index >= lists_.size()) lists_.resize(index + 1);
    lists_[index].push_back(std::move(value));
  }
  // In insertion order.
  std::span<const T> of(const Primitive& primitive) const {
    const auto index = std::size_t(primitive.index());
    return index < lists_.size() ? std::span<const T>(lists_[index]) : std::span<const T>();
  }

 private:
  std::vector<std::vector<T>> lists_;
};

}  // namespace plait
