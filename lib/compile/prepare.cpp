// The order of the passes. Each later one needs the form that simplify gives, and leaves equations
// that simplify merges or drops.
// SPDX-License-Identifier: Apache-2.0
#include "compile/prepare.h"

#include <algorithm>

#include "compile/loop_residuals.h"
#include "compile/outer_products.h"
#include "compile/simplify.h"

namespace plait::compile_passes {

bool is_claimed(std::span<const Backend* const> backends, const Equation& equation,
                std::span<const Aval> inputs, std::span<const Aval> outputs) {
  return std::any_of(backends.begin(), backends.end(), [&](const Backend* backend) {
    return bool(backend->supports(equation, inputs, outputs));
  });
}

Jaxpr prepare(const Jaxpr& program, std::span<const Backend* const> backends) {
  const KeepWhole keep = [&](const Equation& equation, std::span<const Aval> inputs,
                             std::span<const Aval> outputs) {
    return is_claimed(backends, equation, inputs, outputs);
  };
  Jaxpr plain = simplify_program(program, keep);
  for (const auto pass : {multiply_outer_products, recompute_residuals})
    if (const Jaxpr changed = pass(plain)) plain = simplify_program(changed, keep);
  return plain;
}

}  // namespace plait::compile_passes
