// Batching of what gives an array of its operand's type: other batches are axes like any.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/rules.h>

namespace plait {

inline Batch::Rule pass_batch(const Primitive& primitive) {
  return [&primitive](Dim, std::span<const Batched> inputs, const Params& params) {
    return std::vector<Batched>{{Array(bind(primitive, {inputs[0].array}, params)), inputs[0].dim}};
  };
}

}  // namespace plait
