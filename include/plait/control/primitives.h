// Primitives of structured control flow. Each holds jaxprs, and every transform recurses into them.
// Their blocks are in lib/control (cond.cpp, scan.cpp, while.cpp, lanes.cpp), and their kernels in
// lib/backends/control.
//
//   cond    (index, operands) -> outputs of the branch that index chooses; an index out of range
//           is clamped
//     branches   jaxprs: (operands) -> outputs
//     select     how it runs where examples take different branches: all branches for all
//                examples, or each for the examples that take it; absent: the cheaper by estimate
//
//   scan    (carry, xs, consts) -> (last carry, ys): the body for each slice of the xs
//     body       jaxpr: (carry, slices of xs, consts) -> (carry, slices of ys)
//     carry, xs  how many operands are carries, and how many are sliced; the rest are consts
//     length     the number of slices; absent where xs are stacks, which know it
//     reverse    whether the last slice comes first
//     flagged    whether the first of the xs, a stack of bools, says which examples take a step;
//                the others keep their carry
//     settled    set by the compiler where no more can leave the loop
//
//   while   (carry, consts of cond, consts of body) -> (last carry, stacks)
//     cond       jaxpr: (carry, its consts) -> bool scalar
//     body       jaxpr: (carry, its consts) -> (carry, values to push), of which the first is true
//                where an example takes this step
//     carry, cond_consts   the number of these operands
//     max_steps  a loop that has not ended after this many steps is an error; absent: no limit
//     select     as for cond: all examples take part until the last one ends
//     checkpoints   about how many carries reverse mode keeps; absent: the residuals of all steps
//
//   lanes   what vmap makes of them where examples diverge: a body of one example applied to each,
//           as if by a loop
//     body       jaxpr of one example
//     lanes      the number of examples, outermost first; batched: for each lane, 1 for each
//                operand that is batched, with its batch axis first
//     axes       sizes of the batches that together form the only lane; absent where that is one
//     guarded    whether an operand before the body's, a bool, says which examples take part;
//                the results of others are unspecified
//
// All take "sizes", the values of the named sizes of their jaxprs; every jaxpr of an equation lists
// the same names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/primitives.h>
#include <plait/primitives/stacks.h>
#include <plait/rules/bodies.h>
#include <plait/rules/diverge.h>
#include <plait/trace/sizes.h>
#include <plait/transforms/lanes.h>

namespace plait {

extern const Primitive cond_p, scan_p, while_p, lanes_p;

// Parameters with every jaxpr that they hold in the names of the enclosing program, and back.
Params open_bodies(const Params& params);
Params close_bodies(const Params& params);

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
  bool reverse = false, flagged = false, settled = false;

  std::size_t num_consts() const { return body->num_binders - num_carry - num_xs; }
  // The aval of an array of such slices: longer by an axis, or a stack.
  Aval stacked(const Aval& slice) const;
};
// The aval of a slice of each.
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

  // Whether the body is nothing but one equation whose examples diverge, under one lane: the form
  // that kernels run. Every other form decomposes to it.
  bool is_divergent() const;
};
// The number of operands before the body's.
inline std::size_t num_before(const LanesParams& lanes) { return lanes.guarded ? 1 : 0; }
// The cotangent of an operand from that of its examples. That of an unbatched operand is their sum.
inline Array sum_shared(const LanesParams& lanes, const Array& cotangent, std::size_t operand) {
  std::vector<int> shared;
  for (std::size_t lane = 0; lane < lanes.lanes.size(); ++lane)
    if (!lanes.lanes[lane].batched[operand]) shared.push_back(int(lane));
  return sum_over(cotangent, shared);
}

}  // namespace plait
