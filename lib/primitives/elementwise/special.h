// Shared by the blocks of special functions: literals, loops over several operands, derivatives in
// the last operand alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/math/special.h>
#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/primitives/special.h>

#include "primitives/spelling.h"

namespace plait::special {

inline Array literal_like(double value, const Array& x) {
  return broadcast_to(Array::literal(value, x.dtype()), x.shape());
}

// Throws where a derivative is asked for that is neither known in closed form nor computed.
[[noreturn]] inline void refuse_derivative(const char* primitive, const char* operand) {
  throw MissingRuleError(
      std::string("no `jvp` rule for `") + primitive + "` in its operand " + operand,
      "hold it constant with lax.stop_gradient");
}

// A function of count floats, without packs.
template <int count, class F>
Pointwise::Rule loops_of(F) {
  return [](std::span<const DType> in, const Params&) -> Chunk {
    return {detail::choose<floating>(in[0], []<class T>() -> Chunk::Loop {
      return [](const void* const* inputs, void* output, std::int64_t n, std::int64_t) {
        for (std::int64_t i = 0; i < n; ++i)
          static_cast<T*>(output)[i] = [&]<std::size_t... k>(std::index_sequence<k...>) {
            return T(F{}(detail::Compute<T>(static_cast<const T*>(inputs[k])[i])...));
          }(std::make_index_sequence<count>());
      };
    })};
  };
}

// The derivative in the last operand, with this factor; refused in the others, which have names.
inline Jvp::Rule in_last(const char* primitive, std::vector<const char*> names,
                         std::function<Array(std::span<const Array> operands)> factor) {
  return [=](std::span<const Array> primals, std::span<const Tangent> tangents,
             std::span<const Array> outputs, const Params&) -> Tangents {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (!tangents[i].is_zero()) refuse_derivative(primitive, names[i]);
    if (tangents.back().is_zero()) return {Tangent(outputs[0].aval())};
    const Tangent tangent = Array(tangents.back().array() * factor(primals));
    return {broadcast_tangent(tangent, outputs[0].aval())};
  };
}
// No samples of the family's kind: lib/inspect/samples.cpp has cases with constant operands.
inline std::vector<Sample> no_samples() { return {}; }

}  // namespace plait::special
