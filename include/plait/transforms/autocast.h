// autocast: computes the products of a float32 function in 16 bits.
//
//   auto loss16 = plait::autocast(loss, {.dtype = DType::float16});
//   auto step = plait::jit(plait::grad(loss16));   // gradients are float32, as the parameters are
//
// Types of arguments and results stay as they are. Float32 operands of dot_general, conv and
// attention are cast to the policy's dtype. Movement, simple arithmetic and activations stay in
// that dtype where their operands are in it. Reductions, exponentials, normalisations, losses and
// all else are computed in float32. Other dtypes are left alone. The bodies of equations (jit,
// custom rules, loops, branches) are rewritten alike, and their types stay.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/transforms/api.h>

namespace plait {

struct AutocastPolicy {
  DType dtype = DType::bfloat16;  // bfloat16 or float16
  // Primitives and composites, by name, that compute in dtype, or in float32, regardless of the
  // default.
  std::vector<std::string> low = {}, full = {};
  bool operator==(const AutocastPolicy&) const = default;
};

namespace flat {
// ValueError for a policy with another dtype, or with an unknown name.
Arrays autocast(const Function& function, std::span<const Array> inputs,
                const AutocastPolicy& policy);
}  // namespace flat

// The same for a program, memoised on it.
Jaxpr autocast_jaxpr(const Jaxpr& jaxpr, const AutocastPolicy& policy);

template <class F>
auto autocast(F f, AutocastPolicy policy = {}) {
  using Result = detail::result_of<F>;
  return typename detail::signature_of<F>::template Returning<Result>(
      [=](const auto&... arguments) -> Result {
        TransformScope scope("autocast", "");
        const detail::Flat<F> flat(f, arguments...);
        return unflatten<Result>(*flat.result, flat::autocast(flat.function, flat.inputs, policy));
      });
}

}  // namespace plait
