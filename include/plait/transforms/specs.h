// Programs of named sizes over C++ functions: make_jaxpr on specs, and mask. Specs, instantiate and
// ragged are in sizes.h.
//
//   Array pooled(const Weights& w, const Array& x);              // x of any number of rows
//   auto m = plait::mask(pooled, {{"d k", "k"}, "n d"});         // a spec for each leaf
//   m(w, padded, plait::Sizes{{"n", 3}});
//   plait::vmap(m, {std::nullopt, 0, 0})(w, batch, plait::Sizes{{"n", lengths}});
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/constraints.h>
#include <plait/transforms/api.h>

namespace plait::flat {

// mask with sizes that satisfy constraints, which are checked at run time.
Arrays mask(const Function& function, std::span<const Array> inputs, const MaskOptions& options,
            const Constraints& constraints);

}  // namespace plait::flat

namespace plait {

// A spec for each argument, or a list of specs for the parts of one.
using SpecTree = PrefixTree<Spec>;

namespace detail {

template <class A>
inline constexpr bool is_spec = std::is_convertible_v<const A&, SpecTree>;

// An argument of type T, or a T of empty arrays where a spec stands for it.
template <class T, class A>
T stand_in(const A& argument) {
  if constexpr (is_spec<A>)
    return T{};
  else
    return argument;
}

}  // namespace detail

// The jaxpr of f, and the arrays that f captured. Arguments are values, or specs in their place:
// text such as "n d", or a SpecTree for a struct. The jaxpr binds the sizes that specs name, which
// satisfy the constraints: make_jaxpr(f, Constraints{"n % 8 == 0"}, "n d").
template <class F, class... A>
Traced make_jaxpr(const F& f, const Constraints& constraints, const A&... arguments)
  requires(sizeof...(A) > 0 && !std::is_convertible_v<F, Function>)
{
  using Arguments = detail::arguments_of<F>;
  static_assert(sizeof...(A) == std::tuple_size_v<Arguments>,
                "give a value or a spec for each argument");
  TransformScope scope("make_jaxpr", "");
  using Flat = detail::Flat<std::decay_t<F>>;  // a function as a pointer to it
  const Flat flat = [&]<std::size_t... i>(std::index_sequence<i...>) {
    return Flat(f, detail::stand_in<std::tuple_element_t<i, Arguments>>(arguments)...);
  }(std::index_sequence_for<A...>());
  std::vector<Spec> specs;
  std::vector<std::optional<Aval>> actual;
  auto structure = flat.structures.begin();
  auto add = [&](const auto& argument) {
    if constexpr (detail::is_spec<std::decay_t<decltype(argument)>>)
      SpecTree(argument).spread("make_jaxpr: the specs", *structure, specs);
    else
      for (int i = 0; i < structure->num_leaves(); ++i)
        specs.push_back(flat.inputs[specs.size()].aval());
    ++structure;
  };
  (add(arguments), ...);
  return trace_with_specs(flat.function, specs, actual, "make_jaxpr", constraints);
}
template <class F, class... A>
Traced make_jaxpr(const F& f, const A&... arguments)
  requires(sizeof...(A) > 0 && !std::is_convertible_v<F, Function> &&
           !std::is_same_v<std::tuple_element_t<0, std::tuple<A...>>, Constraints>)
{
  return make_jaxpr(f, Constraints(), arguments...);
}

// The avals of the result's leaves, in order, without computing them; from values or specs.
template <class F, class... A>
std::vector<Aval> eval_shape(const F& f, const A&... arguments) {
  return make_jaxpr(f, arguments...).jaxpr->output_avals();
}

// f on arrays padded to fixed sizes, called as m(x, w, Sizes{{"n", 3}}). in_shapes has a spec for
// each argument; a single spec stands for the only argument. Sizes that the call does not give are
// those of the arrays. Padding is never read, gets a gradient of zero and is zero in results.
// out_shapes, when given, is checked. ValueError for a size beyond its bound or an unknown name,
// ShapeError for two extents of a name and for sizes that violate the constraints.
template <class F>
auto mask(F f, SpecTree in_shapes, SpecTree out_shapes = std::nullopt,
          Constraints constraints = {}) {
  using Result = detail::result_of<F>;
  constexpr std::size_t num_arguments = std::tuple_size_v<detail::arguments_of<F>>;
  return typename detail::signature_of<F>::template Returning<Result, Sizes>(
      [=](const auto&... all) -> Result {
        TransformScope scope("mask", "");
        const auto given = std::tie(all...);
        const detail::Flat<F> flat = [&]<std::size_t... i>(std::index_sequence<i...>) {
          return detail::Flat<F>(f, std::get<i>(given)...);
        }(std::make_index_sequence<num_arguments>());
        const TreeDef arguments = TreeDef::tuple(flat.structures);
        if (!in_shapes.is_list() && num_arguments != 1)
          throw ValueError("mask: in_shapes has 1 spec, and the function takes " +
                               std::to_string(num_arguments) + " arguments",
                           "give one spec for each argument");
        flat::MaskOptions options;
        in_shapes.spread("mask: in_shapes", arguments, options.in_shapes);
        options.sizes = std::get<num_arguments>(given);
        options.out_shapes = [&](std::size_t) {
          std::vector<Spec> specs;
          out_shapes.spread("mask: out_shapes", *flat.result, specs);
          return specs;
        };
        return unflatten<Result>(*flat.result,
                                 flat::mask(flat.function, flat.inputs, options, constraints));
      });
}

}  // namespace plait
