// The Builder, and the canonical order that closing establishes. See jaxpr.h, close.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/hash.h>
#include <plait/ir/abstract.h>
#include <plait/ir/jaxpr.h>

#include <algorithm>
#include <utility>

#include "ir/close.h"

namespace plait {
namespace {

// The live equations, depth-first, without recursion; each equation follows those that define its
// inputs.
class CanonicalOrder {
 public:
  explicit CanonicalOrder(const OpenJaxpr& open) : open_(open), seen_(open.equations.size()) {
    order_.reserve(open.equations.size());
  }

  void place(int root) {
    if (root < 0 || seen_[std::size_t(root)]) return;
    enter(root);
    while (!stack_.empty()) {
      auto& [index, next] = stack_.back();
      const Equation& equation = open_.equations[std::size_t(index)];
      int child = -1;
      while (next < equation.inputs.size() && child < 0) {
        const Atom& atom = equation.inputs[next++];
        if (!atom.is_var()) continue;
        const int definition = open_.definition[std::size_t(atom.var().id)];
        if (definition >= 0 && !seen_[std::size_t(definition)]) child = definition;
      }
      if (child >= 0) {
        enter(child);
      } else {
        order_.push_back(index);
        stack_.pop_back();
      }
    }
  }
  const std::vector<int>& order() const { return order_; }
  // Whether every equation and var is already in order.
  bool is_given() const {
    for (std::size_t i = 0; i < open_.binders.size(); ++i)
      if (open_.binders[i].id != int(i)) return false;
    return order_.size() == open_.equations.size() && std::ranges::is_sorted(order_);
  }

 private:
  void enter(int index) {
    seen_[std::size_t(index)] = true;
    stack_.emplace_back(index, 0);
  }
  const OpenJaxpr& open_;
  std::vector<bool> seen_;
  std::vector<std::pair<int, std::size_t>> stack_;
  std::vector<int> order_;
};

// Puts the equations into this order, and numbers vars in order of definition.
void reorder(OpenJaxpr& open, const std::vector<int>& order, std::vector<Atom>& outputs) {
  std::vector<Var> renumbered(open.avals.size());
  std::vector<Aval> avals;
  avals.reserve(open.avals.size());
  const auto number = [&](Var& var) {
    Var& known = renumbered[std::size_t(var.id)];
    known = {int(avals.size())};
    avals.push_back(std::move(open.avals[std::size_t(var.id)]));
    var = known;
  };
  const auto translate = [&](std::vector<Atom>& atoms) {
    for (Atom& atom : atoms)
      if (atom.is_var()) atom = renumbered[std::size_t(atom.var().id)];
  };
  for (Var& binder : open.binders) number(binder);
  std::vector<Equation> equations;
  equations.reserve(order.size());
  for (int index : order) {
    Equation& equation = equations.emplace_back(std::move(open.equations[std::size_t(index)]));
    translate(equation.inputs);
    for (Var& var : equation.outputs) number(var);
  }
  translate(outputs);
  open.avals = std::move(avals);
  open.equations = std::move(equations);
}

std::size_t hash_of(const Atom& atom) {
  return atom.is_var() ? std::size_t(atom.var().id) : atom.literal().hash() * 2 + 1;
}

std::size_t hash_of(const JaxprData& data) {
  std::size_t hash = hash_combine(std::size_t(data.num_binders), data.sizes.size());
  for (const Aval& aval : data.avals) hash = hash_combine(hash, aval.hash());
  for (const Equation& equation : data.equations) {
    const auto index = std::size_t(equation.primitive->index());
    hash = hash_combine(hash, hash_combine(index, equation.params.hash()));
    for (const Atom& atom : equation.inputs) hash = hash_combine(hash, hash_of(atom));
  }
  for (const Atom& atom : data.outputs) hash = hash_combine(hash, hash_of(atom));
  return hash;
}

}  // namespace

Jaxpr close(OpenJaxpr open, std::vector<Atom> outputs, std::vector<Dim> sizes) {
  auto data = std::make_shared<JaxprData>();
  CanonicalOrder canonical(open);
  for (std::size_t i = 0; i < open.equations.size(); ++i) {
    if (!is_effectful(open.equations[i])) continue;
    data->effectful = true;
    canonical.place(int(i));
  }
  for (const Atom& atom : outputs)
    if (atom.is_var()) canonical.place(open.definition[std::size_t(atom.var().id)]);
  if (!canonical.is_given()) reorder(open, canonical.order(), outputs);
  data->num_binders = int(open.binders.size());
  data->avals = std::move(open.avals);
  data->equations = std::move(open.equations);
  data->outputs = std::move(outputs);

  data->sizes = std::move(sizes);
  for (const Aval& aval : data->avals) collect_sizes(aval.shape, data->sizes);
  for (const Equation& equation : data->equations)
    for (const auto& [name, value] : equation.params.entries()) collect_sizes(value, data->sizes);
  for (const Constraint& constraint : open.constraints) {
    std::vector<Dim> used;
    collect_sizes(Shape{constraint.left, constraint.right}, used);
    // A constraint over sizes that are not bound here belongs to an enclosing program.
    if (std::all_of(used.begin(), used.end(), [&](Dim size) {
          return std::find(data->sizes.begin(), data->sizes.end(), size) != data->sizes.end();
        }))
      data->constraints.push_back(constraint);
  }
  data->hash = hash_of(*data);
  return Jaxpr(std::move(data));
}

Var Builder::add_binder(Aval aval) {
  Var var{int(avals_.size())};
  avals_.push_back(std::move(aval));
  definition_.push_back(-1);
  binders_.push_back(var);
  return var;
}

std::vector<Var> Builder::add(const Primitive& primitive, std::vector<Atom> inputs, Params params,
                              Source source) {
  std::vector<Aval> avals;
  avals.reserve(inputs.size());
  for (const Atom& atom : inputs) avals.push_back(aval(atom));
  std::vector<Aval> outputs = infer(primitive, avals, params);
  return add(primitive, std::move(inputs), std::move(params), source, std::move(outputs));
}

std::vector<Var> Builder::add(const Primitive& primitive, std::vector<Atom> inputs, Params params,
                              Source source, std::vector<Aval> avals) {
  std::vector<Var> outputs;
  outputs.reserve(avals.size());
  for (Aval& aval : avals) {
    outputs.push_back({int(avals_.size())});
    avals_.push_back(std::move(aval));
    definition_.push_back(int(equations_.size()));
  }
  equations_.push_back({&primitive, std::move(inputs), std::move(params), outputs, source});
  return outputs;
}

void Builder::add_constraint(Constraint constraint) {
  if (std::find(constraints_.begin(), constraints_.end(), constraint) == constraints_.end())
    constraints_.push_back(constraint);
}

Jaxpr Builder::close(std::vector<Atom> outputs, std::vector<Dim> sizes) const {
  return plait::close({binders_, avals_, definition_, equations_, constraints_}, std::move(outputs),
                      std::move(sizes));
}

}  // namespace plait
