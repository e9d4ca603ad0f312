// loop_sums: a carry to which a step adds the sum of an array, and which nothing else reads, as a
// carry to which it adds the array, summed once behind the loop:
//   before   c' = c + sum(x)        (gradients of what all examples of a vmapped loop share)
//   after    s' = s + x, with s = 0 at first; c + sum(s) behind
// Elements then need nothing of each other within the loop, so that each can run through all steps
// by itself; and fewer numbers are added one after the other.
//
// It runs behind loop_motion, under its conditions: see there.
// SPDX-License-Identifier: Apache-2.0
#include "loop_sums.h"

#include <plait/ops.h>
#include <plait/ops_control.h>
#include <plait/transforms.h>

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
  Sums(const ScanParams& scan, const Jaxpr& body) : body_(body), readers_(body->avals.size(), 0) {
    std::vector<int> definition(body->avals.size(), -1);
    for (std::size_t e = 0; e < body->equations.size(); ++e) {
      for (const Atom& atom : body->equations[e].inputs) count(atom);
      for (Var var : body->equations[e].outputs) definition[std::size_t(var.id)] = int(e);
    }
    for (const Atom& atom : body->outputs) count(atom);
    for (std::size_t carry = 0; carry < scan.num_carry; ++carry)
      if (auto sum = find(carry, definition)) found.push_back(*sum);
  }

  // The body with larger carries.
  Jaxpr rewritten() const {
    Builder builder;
    std::vector<Atom> atoms(body_->avals.size(), Atom(Var{}));
    auto read = [&](const Atom& atom) {
      return atom.is_var() ? atoms[std::size_t(atom.var().id)] : atom;
    };
    for (int i = 0; i < body_->num_binders; ++i) {
      const Sum* sum = sum_of(std::size_t(i));
      atoms[std::size_t(i)] =
          builder.add_binder(sum ? body_->aval(sum->array) : body_->avals[std::size_t(i)]);
    }
    for (std::size_t e = 0; e < body_->equations.size(); ++e) {
      const Equation& equation = body_->equations[e];
      std::vector<Atom> inputs;
      for (const Atom& atom : equation.inputs) inputs.push_back(read(atom));
      for (const Sum& sum : found) {
        if (int(e) == sum.reduction) inputs.clear();
        if (int(e) == sum.addition) inputs = {atoms[sum.carry], read(sum.array)};
      }
      if (inputs.empty() && !equation.inputs.empty()) continue;
      const std::vector<Var> outputs =
          builder.add(*equation.primitive, std::move(inputs), equation.params, equation.source);
      for (std::size_t i = 0; i < outputs.size(); ++i)
        atoms[std::size_t(equation.outputs[i].id)] = outputs[i];
    }
    std::vector<Atom> outputs;
    for (const Atom& atom : body_->outputs) outputs.push_back(read(atom));
    return builder.close(std::move(outputs));
  }

  const Sum* sum_of(std::size_t carry) const {
    for (const Sum& sum : found)
      if (sum.carry == carry) return &sum;
    return nullptr;
  }

  std::vector<Sum> found;

 private:
  void count(const Atom& atom) {
    if (atom.is_var()) ++readers_[std::size_t(atom.var().id)];
  }
  bool is_read_once(const Atom& atom) const {
    return atom.is_var() && readers_[std::size_t(atom.var().id)] == 1;
  }

  std::optional<Sum> find(std::size_t carry, const std::vector<int>& definition) const {
    const Atom binder{Var{int(carry)}}, next = body_->outputs[carry];
    if (!is_read_once(binder) || !is_read_once(next)) return std::nullopt;
    const int addition = definition[std::size_t(next.var().id)];
    if (addition < 0 || !(*equation(addition).primitive == add_p)) return std::nullopt;
    const std::vector<Atom>& terms = equation(addition).inputs;
    const Atom& term = terms[0] == binder ? terms[1] : terms[0];
    if (!(terms[0] == binder || terms[1] == binder) || !is_read_once(term)) return std::nullopt;
    const int reduction = definition[std::size_t(term.var().id)];
    if (reduction < 0 || !(*equation(reduction).primitive == reduce_p) ||
        equation(reduction).params.text("kind") != "sum")
      return std::nullopt;
    const Atom array = equation(reduction).inputs[0];
    const Aval aval = body_->aval(array);
    const bool fits = aval.shape.is_constant() &&
                      aval.shape.num_elements().constant() * size_of(aval.dtype) <= largest_bytes;
    if (!fits || !array.is_var()) return std::nullopt;
    return Sum{carry, addition, reduction, array};
  }

  const Equation& equation(int index) const { return body_->equations[std::size_t(index)]; }

  const Jaxpr& body_;
  std::vector<int> readers_;  // by var
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
  const Params rewritten = scan.to_params().with("settled", true);
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
