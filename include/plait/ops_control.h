// Primitives of structured control flow. Each holds jaxprs, and every transform recurses into them;
// what transforms make of them is in transforms/ (cond.cpp, scan.cpp, while.cpp, lanes.cpp), and
// how they run in lib/run/control.cpp.
//
//   cond    (index, operands) -> outputs of the branch that index chooses; an index out of range
//           is clamped
//     branches   jaxprs: (operands) -> outputs
//     select     how it runs where examples go different ways: all branches for all examples, or
//                each for those that take it; absent: the cheaper, as it seems
//
//   scan    (carry, xs, consts) -> (last carry, ys): the body for each slice of the xs
//     body       jaxpr: (carry, slices of xs, consts) -> (carry, slices of ys)
//     carry, xs  how many operands are carries, and how many are sliced; the rest are consts
//     length     how many slices; absent where xs are stacks, which know it
//     reverse    whether the last slice comes first
//     flagged    whether the first of the xs, a stack of bools, says which examples take a step;
//                others keep their carry
//
//   while   (carry, consts of cond, consts of body) -> (last carry, stacks)
//     cond       jaxpr: (carry, its consts) -> bool scalar
//     body       jaxpr: (carry, its consts) -> (carry, values to push), of which the first is true
//                where an example takes this step
//     carry, cond_consts   how many operands these are
//     max_steps  a loop that has not ended after so many steps is an error; absent: none
//     select     as for cond: all examples take part until the last one ends
//     checkpoints   about how many carries reverse mode keeps; absent: what every step needs
//
//   lanes   what vmap makes of them where examples go different ways: a body of one example applied
//           to each, as if by a loop
//     body       jaxpr of one example
//     lanes      how many examples, outermost first; batched: for each lane, 1 for each operand
//                that has one for each example, its axis first
//     axes       sizes of the batches that are together the only lane; absent where that is one
//     guarded    whether an operand before the body's, a bool, says which examples take part;
//                results of others are unspecified
//
// All take "sizes", the values of the jaxprs' named sizes; every jaxpr of an equation lists the
// same.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/sizes.h>

namespace plait {

extern const Primitive cond_p, scan_p, while_p, lanes_p, empty_stack_p;

// Parameters with every jaxpr that they hold in the names of the enclosing program, and back.
Params open_bodies(const Params& params);
Params close_bodies(const Params& params);

// Two lists in one: operands of such an equation, their types, flags.
template <class A, class B = A>
  requires std::same_as<typename A::value_type, typename B::value_type>
std::vector<typename A::value_type> concatenate(const A& a, const B& b) {
  std::vector<typename A::value_type> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

struct CondParams {
  CondParams() = default;
  explicit CondParams(const Params& params);
  Params to_params() const;

  std::vector<Jaxpr> branches;
  std::optional<bool> select;
};

struct ScanParams {
  ScanParams() = default;
  explicit ScanParams(const Params& params);
  Params to_params() const;

  Jaxpr body;
  std::size_t num_carry = 0, num_xs = 0;
  std::optional<Dim> length;
  bool reverse = false, flagged = false;

  std::size_t num_consts() const { return body->num_binders - num_carry - num_xs; }
  // What arrays of such slices are: longer by an axis, or stacks.
  Aval stacked(const Aval& slice) const;
};
// What a slice of each is.
std::vector<Aval> slices_of(std::vector<Aval> avals);

struct WhileParams {
  WhileParams() = default;
  explicit WhileParams(const Params& params);
  Params to_params() const;

  Jaxpr cond, body;
  std::size_t num_carry = 0, num_cond_consts = 0;
  std::optional<std::int64_t> max_steps, checkpoints;
  std::optional<bool> select;

  std::size_t num_body_consts() const { return body->num_binders - num_carry; }
  std::size_t num_pushes() const { return body->outputs.size() - num_carry; }
};

struct LanesParams {
  LanesParams() = default;
  explicit LanesParams(const Params& params);
  Params to_params() const;

  Jaxpr body;
  std::vector<Lane> lanes;
  Shape axes;
  bool guarded = false;

  // Whether the body is nothing but one equation whose examples go different ways, under one lane:
  // what kernels run. Everything else decomposes to that.
  bool is_divergent() const;
};
// Whether kernels can and shall run an equation for the examples that need it, where these operands
// have one for each example.
bool diverges(const Equation& equation, const std::vector<bool>& batched);
// Whether computing all branches for every example costs little more than finding out who needs
// which: of a cond, or of lanes around one.
bool is_cheap_together(const Equation& equation);

// A function of elements applied to those of stacks at each height.
Array map_stacks(std::span<const Array> stacks,
                 const std::function<Array(std::span<const Array> elements)>& function);
// The sum over axes; of a stack, over those of its elements.
Array sum_over(const Array& array, std::span<const int> axes);

}  // namespace plait
