// The builder of programs. See edit.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rewriting/edit.h>

#include <plait/base/internal_error.h>
#include <plait/rules/rules.h>
#include <plait/trace/sizes.h>
#include <plait/transforms/composites.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <variant>

#include "ir/close.h"
#include "ir/environment.h"

namespace plait {

ProgramBuilder::ProgramBuilder(const Jaxpr& jaxpr)
    : avals_(jaxpr->avals),
      definition_(jaxpr->avals.size(), -1),
      users_(jaxpr->avals.size()),
      num_uses_(jaxpr->avals.size(), 0),
      output_uses_(jaxpr->avals.size(), 0),
      equations_(jaxpr->equations),
      order_(jaxpr->equations.size()),
      outputs_(jaxpr->outputs),
      sizes_(jaxpr->sizes),
      constraints_(jaxpr->constraints) {
  for (int i = 0; i < jaxpr->num_binders; ++i) inputs_.push_back({i});
  for (std::size_t e = 0; e < equations_.size(); ++e) {
    order_[e] = int(e);
    for (const Atom& atom : equations_[e].inputs)
      if (atom.is_var()) users_[atom.var().id].push_back(int(e)), ++num_uses_[atom.var().id];
    for (Var var : equations_[e].outputs) definition_[var.id] = int(e);
  }
  for (const Atom& atom : outputs_)
    if (atom.is_var()) ++output_uses_[atom.var().id];
}

Aval ProgramBuilder::aval(const Atom& atom) const {
  require(atom, "aval");
  return atom.is_var() ? avals_[atom.var().id] : atom.literal().aval();
}

void ProgramBuilder::require(const Atom& atom, std::string_view what) const {
  if (atom.is_var() && atom.var().id >= int(avals_.size()))
    throw ValueError(
        std::string(what) + ": var " + std::to_string(atom.var().id) + " is none of this builder's",
        "use its inputs, and what add and splice returned");
  if (!atom.is_var()) {
    const Literal& literal = atom.literal();
    if (!(cast(literal, literal.dtype, literal.weak) == literal))
      throw DtypeError(
          std::string(what) + ": the literal " + literal.to_string() + " does not fit its dtype",
          "make it with Array::literal or cast");
  }
}

Var ProgramBuilder::add_input(const Aval& aval) {
  const Var var{int(avals_.size())};
  avals_.push_back(aval);
  definition_.push_back(-1);
  users_.emplace_back();
  num_uses_.push_back(0);
  output_uses_.push_back(0);
  inputs_.push_back(var);
  return var;
}

std::vector<Var> ProgramBuilder::add_known(const Primitive& primitive, std::vector<Atom> inputs,
                                           const Params& params, Source source,
                                           std::vector<Aval> avals) {
  const int index = int(equations_.size());
  int order = 0;
  for (const Atom& atom : inputs) {
    if (!atom.is_var()) continue;
    users_[atom.var().id].push_back(index);
    ++num_uses_[atom.var().id];
    if (const int definition = definition_[atom.var().id]; definition >= 0)
      order = std::max(order, order_[definition]);
  }
  std::vector<Var> outputs;
  for (Aval& aval : avals) {
    outputs.push_back({int(avals_.size())});
    avals_.push_back(std::move(aval));
    definition_.push_back(index);
    users_.emplace_back();
    num_uses_.push_back(0);
    output_uses_.push_back(0);
  }
  order_.push_back(order);
  equations_.push_back({&primitive, std::move(inputs), params, outputs, source});
  return outputs;
}

namespace {

// The parameters that all samples of a primitive have, and their kinds.
using Kinds = std::map<std::string, std::set<std::size_t>, std::less<>>;
const Kinds& kinds_of(const Primitive& primitive) {
  static std::mutex mutex;
  static auto& known = *new std::map<int, Kinds>;
  const Samples::Rule* samples = Samples::table().find(primitive);
  std::lock_guard lock(mutex);
  const auto [found, is_first] = known.try_emplace(primitive.index());
  Kinds& kinds = found->second;
  if (!is_first || !samples) return kinds;
  std::map<std::string, std::size_t> counts;
  const std::vector<Sample> all = (*samples)();
  for (const Sample& sample : all)
    for (const auto& [name, value] : sample.params.entries()) {
      kinds[name].insert(value.index());
      ++counts[name];
    }
  std::erase_if(kinds, [&](const auto& entry) { return counts[entry.first] < all.size(); });
  return kinds;
}

// The kinds of parameter values, in the order of ParamValue.
constexpr const char* kind_names[] = {
    "a bool", "a size",    "a list of sizes",    "a number",  "a dtype",
    "text",   "a program", "a list of programs", "a function"};
static_assert(std::size(kind_names) == std::variant_size_v<ParamValue>);

// Abstract rules do not look at every parameter, and kernels read the others at run time.
// Primitives that hold bodies may omit some.
void require_kinds(const Primitive& primitive, const Params& params) {
  const Kinds& all = kinds_of(primitive);
  const bool may_miss = std::any_of(all.begin(), all.end(), [](const auto& entry) {
    return entry.second.contains(ParamValue(Jaxpr()).index()) ||
           entry.second.contains(ParamValue(std::vector<Jaxpr>()).index());
  });
  for (const auto& [name, kinds] : all) {
    const ParamValue* value = params.find(name);
    if (value ? kinds.contains(value->index()) : may_miss) continue;
    std::string wanted;
    for (std::size_t kind : kinds) (wanted += wanted.empty() ? "" : " or ") += kind_names[kind];
    throw InternalError("'" + name + "' is " + (value ? kind_names[value->index()] : "missing") +
                        ", and must be " + wanted);
  }
}

// Runs rules on parameters that are not yet checked: what a rule does not understand is the
// caller's mistake.
template <class F>
auto with_given_params(const Primitive& primitive, const Params& params, const F& f) {
  auto fail = [&](const std::string& what) {
    throw ValueError("`" + std::string(primitive.name()) + "` does not take the parameters (" +
                         params.to_string() + "): " + what,
                     "give those that an equation of it has, as plait.make_jaxpr shows");
  };
  try {
    return f();
  } catch (const InternalError& error) {
    fail(problem_of(error));
  } catch (const std::bad_variant_access&) {
    fail("one of them is of another kind");
  }
  throw InternalError("unreachable");
}

// The avals of an equation's outputs, and its constraints on named sizes.
struct Inferred {
  std::vector<Aval> avals;
  std::vector<Constraint> constraints;
};
Inferred infer_outputs(const Primitive& primitive, const std::vector<Aval>& inputs,
                       const Params& params) {
  std::vector<Dim> sizes;
  for (const Aval& aval : inputs) collect_sizes(aval.shape, sizes);
  for (const auto& [name, value] : params.entries()) collect_sizes(value, sizes);
  return with_given_params(primitive, params, [&] {
    require_kinds(primitive, params);
    // The avals may not depend on the parameters, but the loop does.
    if (const Pointwise::Rule* pointwise = Pointwise::table().find(primitive)) {
      std::vector<DType> dtypes;
      for (const Aval& aval : inputs) dtypes.push_back(aval.dtype);
      infer(primitive, inputs, params);
      (*pointwise)(dtypes, params);
    }
    if (sizes.empty()) return Inferred{infer(primitive, inputs, params), {}};
    JaxprTrace program("builder");  // constraints are recorded in the innermost program
    TraceScope scope(&program);
    Inferred inferred{infer(primitive, inputs, params), {}};
    inferred.constraints = program.close({}, sizes).jaxpr->constraints;
    return inferred;
  });
}

}  // namespace

std::vector<Atom> ProgramBuilder::add(const Primitive& primitive, std::vector<Atom> inputs,
                                      const Params& params, Source source) {
  std::vector<Aval> avals;
  for (const Atom& atom : inputs) avals.push_back(aval(atom));
  const SourceScope scope(source);
  Inferred inferred = infer_outputs(primitive, avals, params);
  auto known = with_given_params(primitive, params,
                                 [&] { return simplify(primitive, inputs, avals, params); });
  if (known) return *std::move(known);
  for (const Constraint& constraint : inferred.constraints) add_constraint(constraint);
  const std::vector<Var> outputs =
      add_known(primitive, std::move(inputs), params, source, std::move(inferred.avals));
  return {outputs.begin(), outputs.end()};
}

std::vector<Atom> ProgramBuilder::splice(const Jaxpr& jaxpr, std::vector<Atom> inputs) {
  std::vector<Aval> avals;
  for (const Atom& atom : inputs) avals.push_back(aval(atom));
  if (int(avals.size()) != jaxpr->num_binders)
    throw TreeError("splice: " + std::to_string(avals.size()) + " inputs for a program of " +
                        std::to_string(jaxpr->num_binders),
                    "give one atom for each of its inputs");
  const Jaxpr body = instantiate_for(jaxpr, avals);
  for (std::size_t i = 0; i < avals.size(); ++i) {
    const Aval& wanted = body->avals[i];
    if (wanted.shape != avals[i].shape || wanted.dtype != avals[i].dtype)
      throw ShapeError("splice: input " + std::to_string(i) + " is " + avals[i].to_string() +
                           " where the program takes " + wanted.to_string(),
                       "give atoms of the types of its inputs");
  }
  Environment environment(body, std::move(inputs));
  for (const Equation& equation : body->equations)
    environment.set(equation.outputs, add(*equation.primitive, environment.read(equation.inputs),
                                          equation.params, equation.source));
  for (const Constraint& constraint : body->constraints) add_constraint(constraint);
  return environment.read(body->outputs);
}

void ProgramBuilder::add_constraint(const Constraint& constraint) {
  if (std::find(constraints_.begin(), constraints_.end(), constraint) == constraints_.end())
    constraints_.push_back(constraint);
}

void ProgramBuilder::set_params(int index, Params params) {
  set(index, *equation(index).primitive, std::move(params));
}

void ProgramBuilder::set(int index, const Primitive& primitive, Params params) {
  const Equation& old = equation(index);
  std::vector<Aval> inputs;
  for (const Atom& atom : old.inputs) inputs.push_back(aval(atom));
  Inferred inferred = infer_outputs(primitive, inputs, params);
  for (std::size_t i = 0; i < old.outputs.size() || i < inferred.avals.size(); ++i)
    if (i >= old.outputs.size() || i >= inferred.avals.size() ||
        !(inferred.avals[i] == avals_[old.outputs[i].id]))
      throw ShapeError("set_params: with (" + params.to_string() + ") the outputs of `" +
                           std::string(primitive.name()) + "` have other types",
                       "add a new equation and replace the old one's outputs");
  for (const Constraint& constraint : inferred.constraints) add_constraint(constraint);
  equations_[index].primitive = &primitive;
  equations_[index].params = std::move(params);
}

void ProgramBuilder::set_outputs(std::vector<Atom> outputs) {
  for (const Atom& atom : outputs) require(atom, "set_outputs");
  for (const Atom& atom : outputs_)
    if (atom.is_var()) --output_uses_[atom.var().id];
  outputs_ = std::move(outputs);
  for (const Atom& atom : outputs_)
    if (atom.is_var()) ++output_uses_[atom.var().id];
}

void ProgramBuilder::take_sizes(const Jaxpr& jaxpr) {
  for (Dim size : jaxpr->sizes)
    if (std::find(sizes_.begin(), sizes_.end(), size) == sizes_.end()) sizes_.push_back(size);
  for (const Constraint& constraint : jaxpr->constraints) add_constraint(constraint);
}

void ProgramBuilder::replace(Var var, const Atom& with) {
  require(var, "replace");
  require(with, "replace");
  if (!(aval(with) == aval(var)))
    throw ShapeError(
        "replace: " + aval(var).to_string() + " cannot be replaced by " + aval(with).to_string(),
        "give an atom of the same shape and dtype");
  if (Atom(var) == with) return;
  // Equations that `with` is computed from keep the var. All others read `with`.
  std::vector<int> keep;
  std::erase_if(users_[var.id], [&](int user) {
    const bool feeds = !is_erased(user) && any_depends_on(std::span(&with, 1), std::span(&user, 1));
    if (feeds) keep.push_back(user);
    return feeds;
  });
  replace_all(var, with);
  num_uses_[var.id] = int(keep.size());
  users_[var.id] = std::move(keep);
}

void ProgramBuilder::replace_all(Var var, const Atom& with) {
  const int definition = with.is_var() ? definition_[with.var().id] : -1;
  const std::vector<int> users = std::exchange(users_[var.id], {});
  num_uses_[var.id] = 0;
  for (int user : users) {
    if (is_erased(user)) continue;
    for (Atom& atom : equations_[user].inputs)
      if (atom == Atom(var)) atom = with;
    if (definition >= 0 && order_[user] < order_[definition]) is_ordered_ = false;
    if (with.is_var()) users_[with.var().id].push_back(user), ++num_uses_[with.var().id];
  }
  if (output_uses_[var.id] > 0) {
    for (Atom& atom : outputs_)
      if (atom == Atom(var)) atom = with;
    if (with.is_var()) output_uses_[with.var().id] += output_uses_[var.id];
    output_uses_[var.id] = 0;
  }
}

void ProgramBuilder::erase_unused(int index) {
  std::vector<int> open{index};
  while (!open.empty()) {
    const int e = open.back();
    open.pop_back();
    if (is_erased(e) || is_effectful(equations_[e])) continue;
    const bool used =
        std::any_of(equations_[e].outputs.begin(), equations_[e].outputs.end(),
                    [&](Var var) { return num_uses_[var.id] > 0 || output_uses_[var.id] > 0; });
    if (used) continue;
    for (const Atom& atom : equations_[e].inputs) {
      if (!atom.is_var()) continue;
      --num_uses_[atom.var().id];
      if (definition_[atom.var().id] >= 0) open.push_back(definition_[atom.var().id]);
    }
    equations_[e] = {nullptr, {}, {}, std::move(equations_[e].outputs), {}};
  }
}

const Equation& ProgramBuilder::equation(int index) const {
  if (index < 0 || index >= int(equations_.size()) || is_erased(index))
    throw ValueError("the builder has no equation " + std::to_string(index),
                     "use the numbers that equations() lists");
  return equations_[index];
}

std::vector<int> ProgramBuilder::equations() const {
  std::vector<int> present;
  for (std::size_t e = 0; e < equations_.size(); ++e)
    if (!is_erased(int(e))) present.push_back(int(e));
  return present;
}

std::vector<int> ProgramBuilder::users_of(Var var) const {
  require(var, "users_of");
  std::vector<int> users = users_[var.id];
  std::erase_if(users, [&](int user) { return is_erased(user); });
  std::sort(users.begin(), users.end());
  users.erase(std::unique(users.begin(), users.end()), users.end());
  return users;
}

std::optional<int> ProgramBuilder::definition_of(Var var) const {
  require(var, "definition_of");
  return definition_[var.id] < 0 ? std::nullopt : std::optional(definition_[var.id]);
}

bool ProgramBuilder::is_output(Var var) const {
  require(var, "is_output");
  return output_uses_[var.id] > 0;
}

// Whether the values depend on a target equation. No target comes before least_order.
bool ProgramBuilder::reaches(std::span<const Atom> values, int least_order,
                             const std::function<bool(int)>& is_target) const {
  std::vector<int> open;
  std::vector<char> seen;
  auto enter = [&](const Atom& atom) {
    if (!atom.is_var()) return;
    const int definition = definition_[atom.var().id];
    if (definition < 0 || (is_ordered_ && order_[definition] < least_order)) return;
    if (seen.empty()) seen.resize(equations_.size(), 0);
    if (!std::exchange(seen[definition], 1)) open.push_back(definition);
  };
  for (const Atom& atom : values) enter(atom);
  while (!open.empty()) {
    const int e = open.back();
    open.pop_back();
    if (is_target(e)) return true;
    for (const Atom& atom : equations_[e].inputs) enter(atom);
  }
  return false;
}

bool ProgramBuilder::any_depends_on(std::span<const Atom> values,
                                    std::span<const int> equations) const {
  int least = order_[equations[0]];
  for (int e : equations) least = std::min(least, order_[e]);
  return reaches(values, least, [&](int e) {
    return std::find(equations.begin(), equations.end(), e) != equations.end();
  });
}

bool ProgramBuilder::depends_on(const Atom& value, Var on) const {
  require(value, "depends_on");
  require(on, "depends_on");
  if (value == Atom(on)) return true;
  const int definition = definition_[on.id];
  // Targets are the readers of `on`, not its definition, whose other outputs do not depend on it.
  return reaches(std::span(&value, 1), definition < 0 ? 0 : order_[definition], [&](int e) {
    return std::find(equations_[e].inputs.begin(), equations_[e].inputs.end(), Atom(on)) !=
           equations_[e].inputs.end();
  });
}

Jaxpr ProgramBuilder::close_unchecked(std::vector<Atom> outputs) const {
  static const Primitive erased("erased");  // for erased equations, which are dead
  OpenJaxpr open{inputs_, avals_, definition_, equations_, constraints_};
  for (Equation& equation : open.equations)
    if (!equation.primitive) equation.primitive = &erased;
  return plait::close(std::move(open), std::move(outputs), sizes_);
}

Jaxpr ProgramBuilder::close() const {
  Jaxpr jaxpr = close_unchecked();
  check(jaxpr);
  return jaxpr;
}

Jaxpr rebuild(const Jaxpr& jaxpr, const EquationRule& rule, Nested nested) {
  ProgramBuilder builder;
  Environment environment(jaxpr);
  for (int i = 0; i < jaxpr->num_binders; ++i)
    environment.set(Var{i}, builder.add_input(jaxpr->avals[i]));
  builder.take_sizes(jaxpr);
  for (const Equation& old : jaxpr->equations) {
    std::vector<Atom> inputs = environment.read(old.inputs);
    Equation equation = old;
    if (nested == Nested::yes && holds_bodies(old.params))
      equation = map_bodies(old, [&](const Jaxpr& body) { return rebuild(body, rule, nested); });
    const SourceScope scope(old.source);
    std::optional<std::vector<Atom>> results = rule(builder, equation, inputs);
    if (!results)
      results = builder.add(*equation.primitive, std::move(inputs), equation.params, old.source);
    if (results->size() != old.outputs.size())
      throw TreeError("rebuild: the rule returned " + std::to_string(results->size()) +
                          " atoms for `" + std::string(old.primitive->name()) + "`, which has " +
                          std::to_string(old.outputs.size()) + " outputs",
                      "return an atom for each output");
    environment.set(old.outputs, *results);
  }
  builder.set_outputs(environment.read(jaxpr->outputs));
  return builder.close();
}

}  // namespace plait
