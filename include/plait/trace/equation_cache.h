// What a thread remembers of the equations that it runs eagerly.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/hash.h>
#include <plait/trace/array.h>

#include <algorithm>
#include <array>

namespace plait {

// An equation on inputs of these types. What is remembered of it derives from this.
struct TypedEquation {
  const Primitive* primitive = nullptr;
  Params params;
  std::vector<Aval> inputs;

  TypedEquation() = default;
  TypedEquation(const Primitive& applied, std::span<const Array> arrays, const Params& its_params)
      : primitive(&applied), params(its_params) {
    for (const Array& array : arrays) inputs.push_back(array.aval());
  }
  bool is(const Primitive& other, std::span<const Array> arrays, const Params& other_params) const {
    if (!primitive || !(*primitive == other) || arrays.size() != inputs.size()) return false;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!(arrays[i].aval() == inputs[i])) return false;
    return params == other_params;
  }
};

// Places by hash, a few for each: an equation takes the place of that which was used least
// recently. Programs of some hundred equations that run in turn find each other's places taken
// seldom. Equations that hold host functions are not to be kept: those are released by their
// owners, not by a thread's end.
template <class Entry>
class EquationCache {
 public:
  // The place of an equation with this hash, or the one that it is to take: the caller looks.
  Entry& place_of(const Primitive& primitive, std::span<const Array> inputs, const Params& params) {
    std::size_t hash = hash_combine(std::size_t(primitive.index()), params.hash());
    for (const Array& input : inputs) {
      const Aval& aval = input.aval();
      hash = hash * 31 + std::size_t(aval.dtype) * 4 + aval.weak * 2 + input.node()->is_taped();
      for (Dim dim : aval.shape) hash = hash_combine(hash, dim.hash());
    }
    Group& group = groups_[(hash >> 32 ^ hash) % groups_.size()];
    std::size_t at = 0;
    while (at + 1 < group.size() && group[at].hash != hash) ++at;
    if (at > 0) std::rotate(group.begin(), group.begin() + at, group.begin() + at + 1);
    group[0].hash = hash;
    return group[0].entry;
  }

 private:
  struct Place {
    std::size_t hash = 0;
    Entry entry;
  };
  using Group = std::array<Place, 4>;  // the latest first
  std::array<Group, 256> groups_;
};

}  // namespace plait
