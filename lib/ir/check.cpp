// The checker of the invariants of every jaxpr, by their numbers in jaxpr.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ir/abstract.h>
#include <plait/ir/jaxpr.h>

#include <algorithm>

namespace plait {
namespace {

struct Checked : Property<bool> {};

[[noreturn]] void fail(const Jaxpr& jaxpr, std::string_view invariant, const std::string& what) {
  throw InternalError(std::string(invariant) + " is broken: " + what + "\n" + print(jaxpr));
}

// The stated type of an output is the inferred one, its weakness too.
bool agrees(const Aval& stated, const Aval& inferred) {
  return stated.dtype == inferred.dtype && stated.shape == inferred.shape &&
         stated.weak == inferred.weak;
}

void check_sizes(const Jaxpr& jaxpr, const Shape& shape, const std::string& where) {
  std::vector<Dim> used;
  collect_sizes(shape, used);
  for (Dim size : used)
    if (std::find(jaxpr->sizes.begin(), jaxpr->sizes.end(), size) == jaxpr->sizes.end())
      fail(jaxpr, "J2", where + " uses the size " + size.to_string() + ", which is not bound");
}

std::vector<Aval> outputs_of(const Jaxpr& jaxpr, const Equation& equation,
                             std::span<const Aval> avals) {
  try {
    return infer(*equation.primitive, avals, equation.params);
  } catch (const ShapeError& error) {
    fail(jaxpr, "J7", std::string(equation.primitive->name()) + ": " + error.what());
  }
}

}  // namespace

void check(const Jaxpr& jaxpr) {
  const GrantedConstraints granted(jaxpr->constraints);
  std::vector<char> bound(jaxpr->avals.size(), 0);
  for (int i = 0; i < jaxpr->num_binders; ++i) bound[i] = 1;
  for (const Aval& aval : jaxpr->avals) check_sizes(jaxpr, aval.shape, aval.to_string());
  auto check_use = [&](const Atom& atom, const std::string& where) {
    if (atom.is_var()) {
      if (atom.var().id >= int(bound.size()) || !bound[atom.var().id])
        fail(jaxpr, "J1",
             "var " + std::to_string(atom.var().id) + " is used before it is bound, in " + where);
    } else if (!(cast(atom.literal(), atom.literal().dtype, atom.literal().weak) ==
                 atom.literal())) {
      fail(jaxpr, "J5", "the literal " + atom.literal().to_string() + " does not fit its dtype");
    }
  };
  std::vector<char> used(jaxpr->avals.size(), 0);
  for (const Equation& equation : jaxpr->equations) {
    const std::string name(equation.primitive->name());
    if (!find_primitive(name)) fail(jaxpr, "J3", "the primitive `" + name + "` is not defined");
    std::vector<Aval> avals;
    avals.reserve(equation.inputs.size());
    for (const Atom& atom : equation.inputs) {
      check_use(atom, name);
      if (atom.is_var()) used[atom.var().id] = 1;
      avals.push_back(jaxpr->aval(atom));
    }
    for_each_body(equation.params, [&](const Jaxpr& body) {
      if (body->sizes.empty())  // nothing around it affects it, and equations share bodies
        body->memo.get(Checked{}, [&] { return check(body), true; });
      else
        check(body);
    });
    for (const auto& [key, value] : equation.params.entries()) {
      std::vector<Dim> sizes;
      collect_sizes(value, sizes);
      check_sizes(jaxpr, Shape(sizes.begin(), sizes.end()), "parameter " + key + " of " + name);
    }
    const std::vector<Aval> outputs = outputs_of(jaxpr, equation, avals);
    if (outputs.size() != equation.outputs.size())
      fail(jaxpr, "J4", name + " has another number of outputs");
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Var var = equation.outputs[i];
      if (var.id >= int(bound.size()) || bound[var.id])
        fail(jaxpr, "J1", "an output of " + name + " is bound twice");
      bound[var.id] = 1;
      if (!agrees(jaxpr->aval(var), outputs[i]))
        fail(jaxpr, "J4",
             "an output of " + name + " is " + jaxpr->aval(var).to_string() +
                 " where its Abstract rule says " + outputs[i].to_string());
    }
  }
  for (const Atom& atom : jaxpr->outputs) {
    check_use(atom, "the outputs");
    if (atom.is_var()) used[atom.var().id] = 1;
  }
  for (const Equation& equation : jaxpr->equations)
    if (!is_effectful(equation) && std::none_of(equation.outputs.begin(), equation.outputs.end(),
                                                [&](Var var) { return used[var.id]; }))
      fail(jaxpr, "J6", "an equation of " + std::string(equation.primitive->name()) + " is dead");
}

}  // namespace plait
