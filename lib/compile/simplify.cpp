// simplify: jaxpr -> jaxpr, in one walk that inlines bodies and rebuilds every equation through
// `add`.
//
// It runs before partition, so that backends see plain equations whatever transforms left behind,
// and after all differentiation, because decomposing masked programs earlier would let NaN of the
// padding reach real gradients. Composites stay whole where a backend claims them.
// SPDX-License-Identifier: Apache-2.0
#include "simplify.h"

#include <plait/ops.h>
#include <plait/ops_control.h>
#include <plait/prune.h>
#include <plait/trace/interpret.h>
#include <plait/transforms.h>

#include "loop_motion.h"
#include "loop_sums.h"
#include "merge_masked.h"

namespace plait::compile_passes {
namespace {

class Simplifier {
 public:
  explicit Simplifier(const KeepWhole& keep) : keep_(keep) {}

  Jaxpr run(const Jaxpr& program) {
    std::vector<Atom> inputs;
    for (const Aval& aval : program->input_avals()) {
      inputs.push_back(builder_.add_binder(aval));
      definitions_.push_back(-1);
    }
    return builder_.close(inline_body(program, std::move(inputs)));
  }

 private:
  // The equations of a body, in the scopes of the equation that it stands for.
  std::vector<Atom> inline_body(const Jaxpr& body, std::vector<Atom> inputs, Source of = {}) {
    const std::string_view outer = of ? std::string_view(of->scope) : std::string_view();
    std::vector<Atom> environment = std::move(inputs);
    environment.resize(body->avals.size(), Atom(Var{}));
    auto read = [&](const Atom& atom) { return atom.is_var() ? environment[atom.var().id] : atom; };
    for (const Equation& equation : body->equations) {
      std::vector<Atom> arguments;
      arguments.reserve(equation.inputs.size());
      for (const Atom& atom : equation.inputs) arguments.push_back(read(atom));
      const std::vector<Atom> results = add(*equation.primitive, std::move(arguments),
                                            equation.params, equation.source.in_scope(outer));
      for (std::size_t i = 0; i < results.size(); ++i)
        environment[equation.outputs[i].id] = results[i];
    }
    std::vector<Atom> outputs;
    for (const Atom& atom : body->outputs) outputs.push_back(read(atom));
    return outputs;
  }

  std::vector<Atom> add(const Primitive& primitive, std::vector<Atom> inputs, const Params& params,
                        Source source) {
    if (primitive == stop_gradient_p || primitive == tag_p) return inputs;
    std::vector<Aval> avals;
    avals.reserve(inputs.size());
    for (const Atom& atom : inputs) avals.push_back(builder_.aval(atom));
    if (auto known = plait::simplify(primitive, inputs, avals, params)) return *std::move(known);
    if (auto replacement = rewrite(primitive, inputs, params, avals)) {
      if (replacement->atom) return {*replacement->atom};
      std::vector<Atom> results =
          add(*replacement->primitive, std::move(replacement->inputs), replacement->params, source);
      if (!replacement->splat_to) return results;
      return add(broadcast_in_dim_p, std::move(results),
                 {{"shape", *replacement->splat_to}, {"dims", Shape{}}}, source);
    }
    if (primitive == barrier_p && std::any_of(inputs.begin(), inputs.end(), is_literal))
      return barrier_of_vars(inputs, source);
    if (primitive == call_p) {
      const Jaxpr body = body_of_call(params);
      if (params.has("symbol") &&
          keep_(Equation{&primitive, inputs, params, {}, source}, avals, body->output_avals()))
        return record(primitive, std::move(inputs), params, source, body->output_avals());
      return inline_body(body, std::move(inputs), source);
    }
    if (primitive == scan_p) {
      const SourceScope scope(source);
      auto simplified = [&](const Jaxpr& body) { return simplify_program(body, keep_); };
      Jaxpr moved = move_out_of_loop(params, avals, simplified);
      if (!moved) moved = sum_behind_loop(params, avals, simplified);
      if (moved) return inline_body(moved, std::move(inputs), source);
    }
    if (!Eval::table().find(primitive) && Decompose::table().find(primitive)) {
      std::vector<Aval> outputs = infer(primitive, avals, params);
      const Equation equation{&primitive, inputs, params, {}, source};
      if (!is_cheap_together(equation) && keep_(equation, avals, outputs))
        return record(primitive, std::move(inputs), params, source, std::move(outputs));
      const SourceScope scope(source);
      return inline_body(decomposition(primitive, avals, params), std::move(inputs), source);
    }
    return record(primitive, std::move(inputs), params, source, infer(primitive, avals, params));
  }

  static bool is_literal(const Atom& atom) { return !atom.is_var(); }

  // Literals need no ordering, and have no memory that a barrier could pass on.
  std::vector<Atom> barrier_of_vars(std::vector<Atom> inputs, Source source) {
    std::vector<Atom> vars;
    std::copy_if(inputs.begin(), inputs.end(), std::back_inserter(vars),
                 [](const Atom& atom) { return atom.is_var(); });
    if (vars.empty()) return inputs;
    const std::vector<Atom> passed = add(barrier_p, std::move(vars), {}, source);
    std::size_t next = 0;
    for (Atom& atom : inputs)
      if (atom.is_var()) atom = passed[next++];
    return inputs;
  }

  // Adds the equation, or finds an equal one. A barrier keeps its results apart from what is equal
  // on its other side, and so from other barriers.
  std::vector<Atom> record(const Primitive& primitive, std::vector<Atom> inputs,
                           const Params& params, Source source, std::vector<Aval> avals) {
    Equation equation{&primitive, inputs, params, {}, source};
    const bool merges = !(primitive == barrier_p) && !is_effectful(equation);
    std::size_t key = std::size_t(primitive.index()) * 0x9e3779b97f4a7c15u + params.hash();
    for (const Atom& atom : inputs)
      key = key * 31 + (atom.is_var() ? std::size_t(atom.var().id) : atom.literal().hash() * 2 + 1);
    if (merges) {
      auto [first, last] = known_.equal_range(key);
      for (; first != last; ++first) {
        const Equation& other = equations_[first->second];
        if (*other.primitive == primitive && other.inputs == inputs && other.params == params)
          return {other.outputs.begin(), other.outputs.end()};
      }
    }
    const std::vector<Var> vars =
        builder_.add(primitive, std::move(inputs), params, source, std::move(avals));
    definitions_.resize(definitions_.size() + vars.size(), int(equations_.size()));
    equation.outputs = vars;
    if (merges) known_.emplace(key, int(equations_.size()));
    equations_.push_back(std::move(equation));
    return {vars.begin(), vars.end()};
  }

  std::optional<Replacement> rewrite(const Primitive& primitive, std::span<const Atom> inputs,
                                     const Params& params, std::span<const Aval> avals) {
    const Candidate candidate{primitive,
                              inputs,
                              params,
                              avals,
                              [this](const Atom& atom) -> const Equation* {
                                if (!atom.is_var() || definitions_[atom.var().id] < 0)
                                  return nullptr;
                                return &equations_[definitions_[atom.var().id]];
                              },
                              [this](const Atom& atom) { return builder_.aval(atom); }};
    for (const Row& row : rewrite_rows())
      if (auto replacement = row.apply(candidate)) return replacement;
    return std::nullopt;
  }

  const KeepWhole& keep_;
  Builder builder_;
  std::vector<Equation> equations_;
  std::vector<int> definitions_;  // by var: the equation that defines it, -1 for binders
  std::unordered_multimap<std::size_t, int> known_;
};

}  // namespace

Jaxpr simplify_program(const Jaxpr& program, const KeepWhole& keep) {
  return prune(merge_masked(Simplifier(keep).run(program)));
}

}  // namespace plait::compile_passes
