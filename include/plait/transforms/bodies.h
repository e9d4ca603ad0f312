// Shared by the rules of primitives that hold jaxprs: which tangents are zero, and programs derived
// from other programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/prune.h>
#include <plait/transforms/transforms.h>

namespace plait {

inline Arrays slice(std::span<const Array> arrays, std::size_t begin, std::size_t end) {
  return {arrays.begin() + std::ptrdiff_t(begin), arrays.begin() + std::ptrdiff_t(end)};
}

inline Flags nonzero(std::span<const Tangent> tangents) {
  Flags flags;
  for (const Tangent& tangent : tangents) flags.push_back(!tangent.is_zero());
  return flags;
}
inline Arrays nonzero_arrays(std::span<const Tangent> tangents) {
  Arrays arrays;
  for (const Tangent& tangent : tangents)
    if (!tangent.is_zero()) arrays.push_back(tangent.array());
  return arrays;
}
// Tangents of values of these avals: the arrays in order where flagged, zero elsewhere.
inline Tangents spread(std::span<const Array> arrays, const Flags& flags,
                       std::span<const Aval> avals) {
  Tangents tangents;
  std::size_t next = 0;
  for (std::size_t i = 0; i < flags.size(); ++i)
    tangents.push_back(flags[i] ? Tangent(arrays[next++]) : Tangent(tangent_aval(avals[i])));
  return tangents;
}

// The same program for a second run, which must not repeat the effects: without its effects, but
// with its results. MissingRuleError where a result is that of an effect.
Jaxpr without_effects(const Jaxpr& jaxpr);
Params without_effects(const Params& params);

// Which outputs depend on flagged inputs.
Flags dependent_outputs(const Jaxpr& jaxpr, const Flags& inputs);

// The sizes for the body of an equation: computed outside it, on the first request.
SizeValues from_outside(const SizeValues& sizes);

// The body where its last operand, a bool, is true; zeros elsewhere. It is a cond, which
// lib/control installs.
Jaxpr guarded_body(const Jaxpr& body);
using BodyGuard = Jaxpr (*)(const Jaxpr& body);
void set_body_guard(BodyGuard guard);

}  // namespace plait
