// Structured control flow over C++ functions and trees, under JAX's names: branches and loops on
// traced values. Functions may capture arrays. Every transform goes into them, at any nesting.
//
//   Array root(const Array& a) {
//     return plait::lax::while_loop(
//         [&](const Array& x) { return plait::lax::gt(x * x - a, 1e-9); },
//         [&](const Array& x) { return 0.5 * (x + a / x); }, a);
//   }
//
// Errors name an array by its number among the leaves: a carry that changes its shape or dtype, a
// predicate that is not a scalar, branches whose results differ.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/values.h>
#include <plait/transforms/transforms.h>

#include <array>
#include <functional>
#include <optional>

namespace plait::lax {
namespace detail {

// Calls function on trees of these structures, whose leaves are consecutive.
template <class... T, class F>
auto call_on_leaves(const F& function, std::span<const Array> leaves,
                    const std::array<const TreeDef*, sizeof...(T)>& structures) {
  const auto values = [&]<std::size_t... i>(std::index_sequence<i...>) {
    return std::tuple<T...>{unflatten<T>(*structures[i], leaves)...};  // braces: left to right
  }(std::index_sequence_for<T...>());
  return std::apply(function, values);
}

inline void require_structure(const TreeDef& given, const TreeDef& wanted, const char* name) {
  if (!(given == wanted))
    throw TreeError(std::string(name) + ": the carry has the structure " + wanted.to_string() +
                        ", and the body returns " + given.to_string(),
                    "return a carry of the structure that came in");
}

}  // namespace detail

namespace detail {

// The implementation of switch_ and cond, under the name of either.
template <class Result, class... Operand>
Result branch(const char* name, const Array& index,
              const std::vector<std::function<Result(const Operand&...)>>& branches,
              const Operand&... operands) {
  Arrays leaves;
  const std::array<TreeDef, sizeof...(Operand)> structures{flatten(operands, leaves)...};
  std::optional<TreeDef> result;
  std::vector<Function> functions;
  for (const auto& branch : branches)
    functions.push_back([&](std::span<const Array> inputs) {
      std::array<const TreeDef*, sizeof...(Operand)> pointers;
      for (std::size_t i = 0; i < structures.size(); ++i) pointers[i] = &structures[i];
      Arrays outputs;
      TreeDef structure = flatten(call_on_leaves<Operand...>(branch, inputs, pointers), outputs);
      if (result && !(structure == *result))
        throw TreeError(std::string(name) + ": the branches return different structures: " +
                            result->to_string() + " and " + structure.to_string(),
                        "return a tree of the same structure from every branch");
      result = std::move(structure);
      return outputs;
    });
  const Arrays outputs = flat::cond(index, functions, leaves, name);
  return unflatten<Result>(*result, outputs);
}

}  // namespace detail

// branches[index](operands...), where an index out of range is clamped. All branches are traced and
// one runs; all return the same types. The branches not taken contribute exact zeros to gradients.
// Under vmap with an index for each example, each example takes its own branch.
template <class Result, class... Operand>
Result switch_(const Array& index,
               const std::vector<std::function<Result(const Operand&...)>>& branches,
               const std::type_identity_t<Operand>&... operands) {
  return detail::branch<Result, Operand...>("switch", index, branches, operands...);
}

// true_fun(operands...) where pred, a bool scalar, is true; else false_fun(operands...). Otherwise
// like switch_.
template <class True, class False, class... Operand>
auto cond(const Array& pred, const True& true_fun, const False& false_fun,
          const Operand&... operands) {
  using Result = std::decay_t<std::invoke_result_t<const True&, const Operand&...>>;
  using Branch = std::function<Result(const Operand&...)>;
  return detail::branch<Result, Operand...>("cond", pred, std::vector<Branch>{false_fun, true_fun},
                                            operands...);
}

// Applies body to a carry while cond of it, a bool scalar, holds. The carry is a tree that keeps
// its structure, shapes and dtypes. A loop that has not ended after options.max_steps is a
// ValueError. Under vmap, examples that have ended keep their carry. Differentiates in both modes.
// Reverse mode keeps the residuals of every step, or about options.checkpoints carries.
template <class Carry, class Cond, class Body>
Carry while_loop(const Cond& cond, const Body& body, const Carry& init,
                 const flat::WhileOptions& options = {}) {
  Arrays leaves;
  const TreeDef structure = flatten(init, leaves);
  const auto flat_cond = [&](std::span<const Array> inputs) -> Arrays {
    return {detail::call_on_leaves<Carry>(cond, inputs, {&structure})};
  };
  const auto flat_body = [&](std::span<const Array> inputs) {
    Arrays outputs;
    const Carry next = detail::call_on_leaves<Carry>(body, inputs, {&structure});
    detail::require_structure(flatten(next, outputs), structure, "while_loop");
    return outputs;
  };
  return unflatten<Carry>(structure, flat::while_loop(flat_cond, flat_body, leaves, options));
}

// The carry after body(i, carry) for each i from lower to upper - 1, int32 or of the bounds' dtype.
// It is a scan where both bounds are numbers, with unroll as there, else a while_loop.
template <class Carry, class Body>
Carry fori_loop(const Array& lower, const Array& upper, const Body& body, const Carry& init,
                std::int64_t unroll = 1) {
  Arrays leaves;
  const TreeDef structure = flatten(init, leaves), index;
  const auto flat_body = [&](std::span<const Array> inputs) {
    Arrays outputs;
    const Carry next = detail::call_on_leaves<Array, Carry>(body, inputs, {&index, &structure});
    detail::require_structure(flatten(next, outputs), structure, "fori_loop");
    return outputs;
  };
  return unflatten<Carry>(structure, flat::fori_loop(lower, upper, flat_body, leaves, unroll));
}

// Applies f(carry, x) -> std::pair(carry, y) to each slice x of the xs along the first axis.
// Returns the last carry, and the ys stacked along a new first axis. Without xs (std::tuple<>()),
// options.length is the number of steps. options.unroll puts that many steps into one step of the
// loop. Reverse mode keeps the residuals of every step, or at most options.checkpoints carries.
template <class Carry, class Xs, class F>
auto scan(const F& f, const Carry& init, const Xs& xs, const flat::ScanOptions& options = {}) {
  using Y = std::decay_t<decltype(f(init, xs).second)>;
  Arrays carry, slices;
  const TreeDef carry_structure = flatten(init, carry), xs_structure = flatten(xs, slices);
  TreeDef ys_structure;
  const auto body = [&](std::span<const Array> inputs) {
    const auto [next, y] =
        detail::call_on_leaves<Carry, Xs>(f, inputs, {&carry_structure, &xs_structure});
    Arrays outputs;
    detail::require_structure(flatten(Carry(next), outputs), carry_structure, "scan");
    ys_structure = flatten(y, outputs);
    return outputs;
  };
  const flat::Scanned done = flat::scan(body, carry, slices, options);
  return std::pair<Carry, Y>{unflatten<Carry>(carry_structure, done.carry),
                             unflatten<Y>(ys_structure, done.ys)};
}

// f of each slice of the xs along the first axis, stacked. Slices run one after the other with the
// memory of one, or by vmap batch_size at a time.
template <class Xs, class F>
auto map(const F& f, const Xs& xs, std::optional<std::int64_t> batch_size = {}) {
  using Y = std::decay_t<std::invoke_result_t<const F&, const Xs&>>;
  Arrays slices;
  const TreeDef structure = flatten(xs, slices);
  TreeDef result;
  const auto each = [&](std::span<const Array> inputs) {
    Arrays outputs;
    result = flatten(detail::call_on_leaves<Xs>(f, inputs, {&structure}), outputs);
    return outputs;
  };
  const Arrays outputs = flat::map(each, slices, batch_size);
  return unflatten<Y>(result, outputs);
}

// Prefix results of an associative function fn(a, b) along an axis, in logarithmic depth. fn works
// element by element on whole arrays (Blelloch 1990, Prefix sums and their applications).
template <class Elems, class F>
Elems associative_scan(const F& fn, const Elems& elems, bool reverse = false, int axis = 0) {
  Arrays leaves;
  const TreeDef structure = flatten(elems, leaves);
  const auto combine = [&](std::span<const Array> inputs) {
    Arrays outputs;
    flatten(Elems(detail::call_on_leaves<Elems, Elems>(fn, inputs, {&structure, &structure})),
            outputs);
    return outputs;
  };
  return unflatten<Elems>(structure, flat::associative_scan(combine, leaves, reverse, axis));
}

}  // namespace plait::lax
