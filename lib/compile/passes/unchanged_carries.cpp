// A carry that every step returns as it was is an operand that the steps share: it has no memory
// of its own, is not copied, and its result is the operand.
// SPDX-License-Identifier: Apache-2.0
#include "compile/passes/unchanged_carries.h"

#include <plait/control/primitives.h>
#include <plait/transforms/transforms.h>

namespace plait::compile_passes {
namespace {

// Numbers of carries, or of binders.
using Numbers = std::vector<std::size_t>;

struct Carries {
  Numbers changed, unchanged;

  Carries(const Jaxpr& body, std::size_t num_carry) {
    for (std::size_t i = 0; i < num_carry; ++i)
      (body->outputs[i] == Atom(Var{int(i)}) ? unchanged : changed).push_back(i);
  }
};

void append(Numbers& numbers, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i) numbers.push_back(i);
}
Numbers joined(const Numbers& a, const Numbers& b) {
  Numbers both = a;
  both.insert(both.end(), b.begin(), b.end());
  return both;
}

// The program with its binders in another order, and some of its outputs.
Jaxpr rearranged(const Jaxpr& program, const Numbers& binders, const Numbers& outputs) {
  Builder builder;
  std::vector<Atom> vars(program->avals.size(), Atom(Var{0}));
  for (std::size_t binder : binders) vars[binder] = builder.add_binder(program->avals[binder]);
  const auto read = [&](const Atom& atom) {
    return atom.is_var() ? vars[std::size_t(atom.var().id)] : atom;
  };
  for (const Equation& equation : program->equations) {
    std::vector<Atom> inputs;
    for (const Atom& atom : equation.inputs) inputs.push_back(read(atom));
    std::vector<Aval> avals;
    for (Var var : equation.outputs) avals.push_back(program->avals[std::size_t(var.id)]);
    const std::vector<Var> results = builder.add(*equation.primitive, std::move(inputs),
                                                 equation.params, equation.source, avals);
    for (std::size_t i = 0; i < results.size(); ++i)
      vars[std::size_t(equation.outputs[i].id)] = results[i];
  }
  std::vector<Atom> atoms;
  for (std::size_t output : outputs) atoms.push_back(read(program->outputs[output]));
  return builder.close(std::move(atoms));
}

Arrays picked(std::span<const Array> arrays, const Numbers& numbers) {
  Arrays some;
  for (std::size_t number : numbers) some.push_back(arrays[number]);
  return some;
}

// Runs a loop on operands in the new order; its first results are the carries that change.
Jaxpr with_forwarded(const Primitive& primitive, const Params& params, const Numbers& order,
                     const Carries& carries, std::span<const Aval> operands) {
  return make_closed_jaxpr(
      [&](std::span<const Array> inputs) {
        const Arrays results = bind(primitive, picked(inputs, order), params);
        Arrays all(carries.changed.size() + carries.unchanged.size());
        for (std::size_t i = 0; i < carries.changed.size(); ++i)
          all[carries.changed[i]] = results[i];
        for (std::size_t carry : carries.unchanged) all[carry] = inputs[carry];
        all.insert(all.end(), results.begin() + std::ptrdiff_t(carries.changed.size()),
                   results.end());
        return all;
      },
      operands);
}

}  // namespace

Jaxpr forward_unchanged_in_scan(const Params& params, std::span<const Aval> operands,
                                const std::function<Jaxpr(const Jaxpr&)>& simplified) {
  ScanParams scan(params);
  if (!scan.length || scan.flagged || !scan.body->sizes.empty()) return {};
  const Jaxpr body = simplified(scan.body);
  const Carries carries(body, scan.num_carry);
  if (carries.unchanged.empty()) return {};
  const std::size_t first_const = scan.num_carry + scan.num_xs;
  Numbers order = carries.changed;
  append(order, scan.num_carry, first_const);
  order = joined(order, carries.unchanged);
  append(order, first_const, operands.size());
  Numbers outputs = carries.changed;
  append(outputs, scan.num_carry, body->outputs.size());
  scan.body = rearranged(body, order, outputs);
  scan.num_carry = carries.changed.size();
  return with_forwarded(scan_p, scan.to_params(), order, carries, operands);
}

Jaxpr forward_unchanged_in_while(const Params& params, std::span<const Aval> operands,
                                 const std::function<Jaxpr(const Jaxpr&)>& simplified) {
  WhileParams loop(params);
  if (loop.num_pushes() > 0 || loop.checkpoints || !loop.body->sizes.empty()) return {};
  const Jaxpr body = simplified(loop.body);
  const Carries carries(body, loop.num_carry);
  if (carries.unchanged.empty() || carries.changed.empty()) return {};
  const auto order_of = [&](const Jaxpr& program) {
    Numbers order = joined(carries.changed, carries.unchanged);
    append(order, loop.num_carry, std::size_t(program->num_binders));
    return order;
  };
  const std::size_t first_of_body = loop.num_carry + loop.num_cond_consts;
  Numbers order = joined(carries.changed, carries.unchanged);
  append(order, loop.num_carry, first_of_body);
  order = joined(order, carries.unchanged);
  append(order, first_of_body, operands.size());
  loop.cond = rearranged(loop.cond, order_of(loop.cond), {0});
  loop.body = rearranged(body, order_of(body), carries.changed);
  loop.num_carry = carries.changed.size();
  loop.num_cond_consts += carries.unchanged.size();
  return with_forwarded(while_p, loop.to_params(), order, carries, operands);
}

}  // namespace plait::compile_passes
