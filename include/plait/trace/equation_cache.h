// What a thread remembers of the equations that it runs eagerly.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/hash.h>
#include <plait/trace/array.h>

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

// Places by hash: an equation takes the place of an older one of the same hash. Equations that hold
// host functions are not to be kept: those are released by their owners, not by a thread's end.
template <class Entry>
class EquationCache {
 public:
  Entry& place_of(const Primitive& primitive, std::span<const Array> inputs, const Params& params) {
    std::size_t hash = hash_combine(std::size_t(primitive.index()), params.hash());
    for (const Array& input : inputs) {
      const Aval& aval = input.aval();
      hash = hash * 31 + std::size_t(aval.dtype) * 4 + aval.weak * 2 + input.node()->is_taped();
      for (Dim dim : aval.shape) hash = hash_combine(hash, dim.hash());
    }
    return places_[(hash >> 32 ^ hash) % places_.size()];
  }

 private:
  std::array<Entry, 256> places_;
};

}  // namespace plait
