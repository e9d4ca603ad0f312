// loop_sums: a carry that accumulates the sum of an array, and that nothing else reads, becomes a
// carry that accumulates the array, which is summed once after the loop:
//   before   c' = c + sum(x)        (gradients of unbatched operands of a vmapped loop)
//   after    s' = s + x, with s = 0 at first; c + sum(s) after the loop
// Elements are then independent within the loop, so each can run through all steps by itself. Fewer
// numbers are added one after the other.
//
// It runs after loop-invariant code motion, under the same conditions: see there.
// SPDX-License-Identifier: Apache-2.0
#include "compile/passes/loop_sums.h"

#include <plait/control/primitives.h>
#include <plait/primitives/primitives.h>
#include <plait/rewriting/edit.h>
#include <plait/transforms/transforms.h>

#include "ir/environment.h"

namespace plait::compile_passes {
namespace {

constexpr std::int64_t largest_bytes = 16 << 20;  // of a new carry

struct Sum {
  std::size_t carry;
  int addition, reduction;  // equations
  Atom array;
};

class Sums {
 public:
  Sums(const ScanParams& scan, const Jaxpr& body) : body_(body), uses_(body) {
    for (std::size_t carry = 0; carry < scan.num_carry; ++carry)
      if (auto sum = find(carry)) found.push_back(*sum);
  }

  // The body with larger carries.
  Jaxpr rewritten() const {
    Builder builder;
    Environment environment(body_);
    for (int i = 0; i < body_->num_binders; ++i) {
      const Sum* sum = sum_of(std::size_t(i));
      environment.set(
          Var{i}, builder.add_binder(sum ? body_->aval(sum->array) : body_->avals[std::size_t(i)]));
    }
    for (std::size_t e = 0; e < body_->equations.size(); ++e) {
      const Equation& equation = body_->equations[e];
      std::vector<Atom> inputs = environment.read(equation.inputs);
      bool is_reduction = false;
      for (const Sum& sum : found) {
        is_reduction |= int(e) == sum.reduction;
        if (int(e) == sum.addition)
          inputs = {environment.read(Var{int(sum.carry)}), environment.read(sum.array)};
      }
      if (is_reduction) continue;
      environment.set(equation.outputs, builder.add(*equation.primitive, std::move(inputs),
                                                    equation.params, equation.source));
    }
    return builder.close(environment.read(body_->outputs));
  }

  const Sum* sum_of(std::size_t carry) const {
    for (const Sum& sum : found)
      if (sum.carry == carry) return &sum;
    return nullptr;
  }

  std::vector<Sum> found;

 private:
  bool is_read_once(const Atom& atom) const {
    return atom.is_var() && uses_.num_uses(atom.var()) == 1;
  }

  std::optional<Sum> find(std::size_t carry) const {
    const Atom binder{Var{int(carry)}}, next = body_->outputs[carry];
    if (!is_read_once(binder) || !is_read_once(next)) return std::nullopt;
    const std::optional<int> addition = uses_.definition_of(next.var());
    if (!addition || !(*equation(*addition).primitive == add_p)) return std::nullopt;
    const std::vector<Atom>& terms = equation(*addition).inputs;
    const Atom& term = terms[0] == binder ? terms[1] : terms[0];
    if (!(terms[0] == binder || terms[1] == binder) || !is_read_once(term)) return std::nullopt;
    const std::optional<int> reduction = uses_.definition_of(term.var());
    if (!reduction || !(*equation(*reduction).primitive == reduce_p) ||
        equation(*reduction).params.text("kind") != "sum")
      return std::nullopt;
    const Atom array = equation(*reduction).inputs[0];
    const Aval aval = body_->aval(array);
    const bool fits = aval.shape.is_constant() &&
                      aval.shape.num_elements().constant() * size_of(aval.dtype) <= largest_bytes;
    if (!fits || !array.is_var()) return std::nullopt;
    return Sum{carry, *addition, *reduction, array};
  }

  const Equation& equation(int index) const { return body_->equations[std::size_t(index)]; }

  const Jaxpr& body_;
  const Uses uses_;
};

}  // namespace

Jaxpr sum_behind_loop(const Params& params, std::span<const Aval> operands,
                      const std::function<Jaxpr(const Jaxpr&)>& simplified) {
  ScanParams scan(params);
  if (!scan.length || scan.length->constant() < 2 || scan.flagged) return {};
  const Jaxpr body = simplified(scan.body);
  const Sums sums(scan, body);
  if (sums.found.empty()) return {};
  scan.body = sums.rewritten();
  scan.settled = true;
  const Params rewritten = scan.to_params();
  return make_closed_jaxpr(
      [&](std::span<const Array> inputs) {
        Arrays starts(inputs.begin(), inputs.end());
        for (const Sum& sum : sums.found) {
          Aval aval = body->aval(sum.array);
          aval.weak = false;
          starts[sum.carry] = lax::zeros_like(aval);
        }
        Arrays results = bind(scan_p, starts, rewritten);
        for (const Sum& sum : sums.found) {
          const Params& reduction = body->equations[std::size_t(sum.reduction)].params;
          results[sum.carry] =
              lax::add(inputs[sum.carry], Array(bind(reduce_p, {results[sum.carry]}, reduction)));
        }
        return results;
      },
      operands);
}

}  // namespace plait::compile_passes
