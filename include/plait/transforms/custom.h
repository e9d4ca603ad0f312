// Functions with their own derivative rules, over C++ functions and structs: custom_jvp and
// custom_vjp. Outside derivatives the function itself runs; every other transform (vmap, jit, mask)
// rewrites function and rule alike.
//
//   auto f = plait::custom_jvp(
//       [](const Array& x) -> Array { return lax::log1p(lax::exp(x)); },
//       [](const std::tuple<Array>& x, const std::tuple<Array>& dx) {
//         const auto& [primal] = x;
//         const auto& [tangent] = dx;
//         return std::pair{lax::log1p(lax::exp(primal)), nn::sigmoid(primal) * tangent};
//       });
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/transforms/api.h>

namespace plait {

// rule(primals, tangents) takes two tuples like f's arguments and returns a pair of results like
// f's: the outputs and their tangents. ShapeError and TreeError say which result does not fit.
template <class F, class Rule>
auto custom_jvp(F f, Rule rule, std::string name = "f") {
  using Arguments = detail::arguments_of<F>;
  using Result = detail::result_of<F>;
  return typename detail::signature_of<F>::template Returning<Result>([=](const auto&... arguments)
                                                                          -> Result {
    const detail::Flat<F> flat(f, arguments...);
    const TreeDef structure = TreeDef::tuple(flat.structures);
    const Function jvp = [rule, structure, result = flat.result](std::span<const Array> leaves) {
      const auto primals = unflatten<Arguments>(structure, leaves);  // consumes its leaves
      const auto tangents = unflatten<Arguments>(structure, leaves);
      const std::pair<Result, Result> pushed = rule(primals, tangents);
      Arrays outputs;
      *result = flatten(pushed, outputs).children()[0];  // for when f itself does not run
      return outputs;
    };
    return unflatten<Result>(*flat.result, flat::custom_jvp(flat.function, jvp, flat.inputs, name));
  });
}

// fwd(arguments...) returns a pair: the result and residuals, any tree of arrays. bwd(residuals,
// cotangents of the result) returns the cotangents of the arguments, as a tuple if there are
// several; those of integer arguments are ignored.
template <class F, class Forward, class Backward>
auto custom_vjp(F f, Forward fwd, Backward bwd, std::string name = "f") {
  using Result = detail::result_of<F>;
  using Residuals = typename detail::result_of<Forward>::second_type;
  return typename detail::signature_of<F>::template Returning<Result>(
      [=](const auto&... arguments) -> Result {
        const detail::Flat<F> flat(f, arguments...);
        const detail::Flat<Forward> forward(fwd, arguments...);
        const flat::ForwardRule rule = [forward,
                                        result = flat.result](std::span<const Array> leaves) {
          Arrays residuals = forward.function(leaves);
          *result = forward.result->children()[0];  // for when f itself does not run
          const auto middle = residuals.begin() + result->num_leaves();
          Arrays outputs(residuals.begin(), middle);
          residuals.erase(residuals.begin(), middle);
          return flat::Forward{std::move(outputs), std::move(residuals)};
        };
        const Function backward = [bwd, both = forward.result](std::span<const Array> leaves) {
          const auto residuals = unflatten<Residuals>(both->children()[1], leaves);
          const auto cotangents = unflatten<Result>(both->children()[0], leaves);
          Arrays all;
          flatten(bwd(residuals, cotangents), all);
          return all;
        };
        return unflatten<Result>(
            *flat.result, flat::custom_vjp(flat.function, rule, backward, flat.inputs, name));
      });
}

}  // namespace plait
