// where with functions: the element-wise form of cond.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/transforms/transforms.h>

namespace plait {
namespace flat {

// For each element of the condition and the xs, which are broadcast to one shape: the outputs,
// scalars, of f where the condition is true, and of g where it is false. The function not taken
// contributes exactly zero to derivatives of every order, and its errors and effects do not occur.
// ShapeError for a function whose outputs are not scalars.
Arrays where(const Array& condition, const Function& f, const Function& g,
             std::span<const Array> xs, const OutputName& output_name = {});

}  // namespace flat

namespace numpy {

// f(xs...) where the condition is true, else g(xs...), element by element, for functions of scalar
// Arrays. Where log(x) would be NaN or infinite, another function can give the element and its
// derivatives:
//
//   numpy::where(numpy::greater(x, 0.0), [](const Array& x) { return numpy::log(x); },
//                [](const Array& x) { return 0.0 * x; }, x)
template <class F, class G, class... X>
  requires(std::is_invocable_r_v<Array, const F&, const X&...> &&
           std::is_invocable_r_v<Array, const G&, const X&...> &&
           (std::is_convertible_v<const X&, Array> && ...))
Array where(const Array& condition, const F& f, const G& g, const X&... xs) {
  const auto flattened = [](const auto& function) -> Function {
    return [&function](std::span<const Array> elements) -> Arrays {
      return [&]<std::size_t... i>(std::index_sequence<i...>) {
        return Arrays{Array(function(elements[i]...))};
      }(std::index_sequence_for<X...>());
    };
  };
  return flat::where(condition, flattened(f), flattened(g), Arrays{Array(xs)...})[0];
}

}  // namespace numpy
}  // namespace plait
