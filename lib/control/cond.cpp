// cond: the function that makes one, and its rules. A transform makes a cond of the transformed
// branches, whose results are made alike. Residuals of different branches share outputs of the
// cond.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/argument_names.h>
#include <plait/base/stack.h>
#include <plait/control/primitives.h>
#include <plait/primitives/families.h>
#include <plait/primitives/mesh.h>
#include <plait/primitives/narrow.h>
#include <plait/primitives/primitives.h>
#include <plait/primitives/widening.h>
#include <plait/rules/bodies.h>
#include <plait/rules/collect.h>
#include <plait/rules/emit.h>
#include <plait/rules/interpret.h>
#include <plait/rules/prune.h>
#include <plait/rules/speculate.h>
#include <plait/rules/steps.h>
#include <plait/trace/varying.h>
#include <plait/transforms/bodies.h>

#include "control/bodies.h"

namespace plait {
namespace {

Arrays with_index(const Array& index, const Arrays& operands) {
  return concatenate(Arrays{index}, operands);
}

// A cond with the parameters of another and these branches.
Arrays bind_cond(CondParams cond, const Array& index, const Arrays& operands,
                 std::vector<Jaxpr> branches) {
  cond.branches = std::move(branches);
  return bind(cond_p, with_index(index, operands), cond.to_params());
}

// The outputs that any branch marks. of(branch) returns the marks of one branch.
template <class Of>
Flags any_branch(const CondParams& cond, const Of& of) {
  Flags any(cond.branches[0]->outputs.size(), false);
  for (const Jaxpr& branch : cond.branches) {
    const Flags mine = of(branch);
    for (std::size_t i = 0; i < any.size(); ++i) any[i] = any[i] || mine[i];
  }
  return any;
}

Differentiated jvp_cond(const CondParams& cond, std::span<const Array> primals,
                        std::span<const Tangent> tangents) {
  const Flags has = nonzero(tangents);
  const Flags outputs = any_branch(
      cond, [&](const Jaxpr& branch) { return jvp_jaxpr(branch, has)->nonzero_outputs; });
  std::vector<Jaxpr> branches;
  for (const Jaxpr& branch : cond.branches)
    branches.push_back(jvp_jaxpr(branch, has, outputs)->jaxpr);
  const Arrays results =
      bind_cond(cond, primals[0],
                concatenate(slice(primals, 1, primals.size()), nonzero_arrays(tangents)), branches);
  Differentiated result{slice(results, 0, outputs.size()), {}};
  result.tangents =
      spread(slice(results, outputs.size(), results.size()), outputs, avals_of(result.outputs));
  return result;
}

// Where the residuals of a branch are: operands of the cond, or places that branches share.
struct Places {
  std::vector<int> operands;  // operands that any branch reads
  std::vector<Aval> shared;
  std::vector<std::vector<int>>
      of_branch;  // by branch and residual: an index of shared, or ~(an index of operands)
};

Places places_of(std::span<const std::shared_ptr<const LinearizedJaxpr>> branches,
                 std::size_t num_outputs) {
  Places places;
  for (const auto& branch : branches) {
    std::vector<bool> taken(places.shared.size(), false);
    std::vector<int>& mine = places.of_branch.emplace_back();
    for (std::size_t i = num_outputs; i < branch->known->outputs.size(); ++i) {
      const Atom& atom = branch->known->outputs[i];
      if (atom.is_var() && atom.var().id < branch->known->num_binders) {
        auto& read = places.operands;
        const auto found = std::find(read.begin(), read.end(), atom.var().id);
        mine.push_back(~int(found - read.begin()));
        if (found == read.end()) read.push_back(atom.var().id);
        continue;
      }
      const Aval aval = branch->known->aval(atom);
      std::size_t place = 0;
      while (place < places.shared.size() && (taken[place] || !(places.shared[place] == aval)))
        ++place;
      if (place == places.shared.size()) {
        places.shared.push_back(aval);
        taken.push_back(false);
      }
      taken[place] = true;
      mine.push_back(int(place));
    }
  }
  return places;
}

Differentiated linearize_cond(std::span<const Array> primals, std::span<const Tangent> given,
                              const Params& params, Trace* linear) {
  const CondParams cond(params);
  const std::span<const Tangent> tangents = given.subspan(1);
  if (linear == Trace::current()) return jvp_cond(cond, primals, tangents);
  const Flags has = nonzero(tangents);
  const std::size_t num_outputs = cond.branches[0]->outputs.size();
  const Flags outputs = any_branch(
      cond, [&](const Jaxpr& branch) { return linearize_jaxpr(branch, has)->nonzero_outputs; });
  std::vector<std::shared_ptr<const LinearizedJaxpr>> jaxprs;
  for (const Jaxpr& branch : cond.branches) jaxprs.push_back(linearize_jaxpr(branch, has, outputs));
  const Places places = places_of(jaxprs, num_outputs);

  std::vector<Jaxpr> known;
  for (std::size_t b = 0; b < jaxprs.size(); ++b)
    known.push_back(make_closed_jaxpr(
        [&](std::span<const Array> operands) {
          const Arrays all = eval_jaxpr(jaxprs[b]->known, operands);
          Arrays results = slice(all, 0, num_outputs), shared(places.shared.size());
          for (std::size_t r = 0; r < places.of_branch[b].size(); ++r)
            if (const int place = places.of_branch[b][r]; place >= 0)
              shared[place] = all[num_outputs + r];
          for (std::size_t i = 0; i < shared.size(); ++i)
            if (!shared[i].is_valid()) shared[i] = lax::zeros_like(places.shared[i]);
          return concatenate(results, shared);
        },
        cond.branches[b]->input_avals(), cond.branches[b]->sizes));
  const Arrays operands = slice(primals, 1, primals.size());
  const Arrays results = bind_cond(cond, primals[0], operands, known);
  Differentiated result{slice(results, 0, num_outputs), {}};

  // Operands of the linear cond: tangents, operands, shared places.
  const Arrays of_tangents = nonzero_arrays(tangents);
  Arrays arguments = of_tangents;
  for (int operand : places.operands) arguments.push_back(operands[operand]);
  const std::size_t first_shared = arguments.size();
  arguments.insert(arguments.end(), results.begin() + std::ptrdiff_t(num_outputs), results.end());
  std::vector<Jaxpr> pushed;
  for (std::size_t b = 0; b < jaxprs.size(); ++b)
    pushed.push_back(make_closed_jaxpr(
        [&](std::span<const Array> in) {
          Arrays inputs = slice(in, 0, of_tangents.size());
          for (int place : places.of_branch[b])
            inputs.push_back(place < 0 ? in[of_tangents.size() + std::size_t(~place)]
                                       : in[first_shared + std::size_t(place)]);
          return eval_jaxpr(jaxprs[b]->linear, inputs);
        },
        avals_of(arguments), cond.branches[b]->sizes));
  TraceScope scope(linear);
  result.tangents =
      spread(bind_cond(cond, primals[0], arguments, pushed), outputs, avals_of(result.outputs));
  return result;
}

Tangents transpose_cond(std::span<const Tangent> cotangents, std::span<const TransposeInput> inputs,
                        const Params& params) {
  const CondParams cond(params);
  Flags linear;
  Arrays known;
  for (const TransposeInput& input : inputs.subspan(1)) {
    linear.push_back(input.is_linear());
    if (!input.is_linear()) known.push_back(input.known());
  }
  const Flags has = nonzero(cotangents);
  // By linear input: whether any branch gives it a cotangent.
  Flags any;
  for (const Jaxpr& branch : cond.branches) {
    const Flags mine = transpose_jaxpr(branch, linear, has)->nonzero_inputs;
    any.resize(mine.size(), false);
    for (std::size_t i = 0; i < mine.size(); ++i) any[i] = any[i] || mine[i];
  }
  const Arrays arguments = concatenate(known, nonzero_arrays(cotangents));
  std::vector<Jaxpr> branches;
  for (const Jaxpr& branch : cond.branches) {
    const auto transposed = transpose_jaxpr(branch, linear, has);
    branches.push_back(make_closed_jaxpr(
        [&](std::span<const Array> in) {
          const Arrays given = eval_jaxpr(transposed->jaxpr, in);
          Arrays results;
          std::size_t next = 0, flag = 0;
          for (std::size_t i = 0; i < linear.size(); ++i) {
            if (!linear[i]) continue;
            if (transposed->nonzero_inputs[flag])
              results.push_back(given[next++]);
            else if (any[flag])
              results.push_back(lax::zeros_like(branch->avals[i]));
            ++flag;
          }
          return results;
        },
        avals_of(arguments), branch->sizes));
  }
  const Arrays outputs = bind_cond(cond, inputs[0].known(), arguments, branches);
  Tangents results{Tangent(inputs[0].aval())};
  std::size_t next = 0, flag = 0;
  for (std::size_t i = 0; i < linear.size(); ++i) {
    const bool gets = linear[i] && any[flag++];
    results.push_back(gets ? Tangent(outputs[next++]) : Tangent(inputs[i + 1].aval()));
  }
  return results;
}

std::vector<Batched> batch_cond_together(const LiveExamples& examples,
                                         std::span<const Batched> inputs, const Params& params);

std::vector<Batched> batch_cond(Dim size, std::span<const Batched> inputs, const Params& params) {
  if (inputs[0].dim) {
    if (const auto examples = communicating_examples(size, params))
      return batch_cond_together(*examples, inputs, params);
    return bind_lanes(cond_p, size, inputs, params);
  }
  const CondParams cond(params);
  Arrays operands;
  std::vector<std::optional<int>> dims;
  for (const Batched& input : inputs.subspan(1)) {
    operands.push_back(input.array);
    dims.push_back(input.dim);
  }
  const Flags batched = any_branch(cond, [&](const Jaxpr& branch) {
    Flags flags;
    for (const auto& dim : batch_jaxpr(branch, size, dims)->out_dims)
      flags.push_back(dim.has_value());
    return flags;
  });
  std::vector<Jaxpr> branches;
  for (const Jaxpr& branch : cond.branches)
    branches.push_back(batch_jaxpr(branch, size, dims, batched)->jaxpr);
  std::vector<Batched> results;
  for (Array& output : bind_cond(cond, inputs[0].array, operands, branches))
    results.push_back(
        {std::move(output), batched[results.size()] ? std::optional<int>(0) : std::nullopt});
  return results;
}

// Runs each branch on all examples. An example gets the results of the branch that it takes.
std::vector<Batched> batch_cond_together(const LiveExamples& examples,
                                         std::span<const Batched> inputs, const Params& params) {
  const CondParams cond(params);
  const std::span<const Batched> operands = inputs.subspan(1);
  if (!inputs[0].dim) {  // all examples take the same branch
    std::vector<Function> branches;
    for (const Jaxpr& branch : cond.branches)
      branches.push_back([&](std::span<const Array>) {
        return to_front(examples.run(branch, operands), examples.size);
      });
    return in_front(flat::cond(inputs[0].array, branches, {}));
  }
  const Array index = batch_to_front(inputs[0], examples.size);
  const int last = int(cond.branches.size()) - 1;
  Arrays results;
  for (int b = last; b >= 0; --b) {
    const Array number = Array::literal(b, DType::int32);
    const Array mine = last == 0   ? lax::eq(index, index)
                       : b == 0    ? lax::le(index, number)
                       : b == last ? lax::ge(index, number)
                                   : lax::eq(index, number);
    const Arrays outputs = to_front(
        examples.run_marked(live_and(examples, mine), cond.branches[b], operands), examples.size);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (b == last)
        results.push_back(outputs[i]);
      else
        results[i] = choose_examples(mine, outputs[i], results[i]);
  }
  return in_front(results);
}

void visit_cond(std::span<const Array> inputs, const Params& params, std::span<const std::int64_t>,
                const Steps::Visit& visit) {
  const CondParams cond(params);
  const std::int64_t last = std::int64_t(cond.branches.size()) - 1;
  const std::int64_t branch = std::clamp<std::int64_t>(inputs[0].item<std::int64_t>(), 0, last);
  visit({cond.branches[std::size_t(branch)], slice(inputs, 1, inputs.size()), "cond",
         "branch " + std::to_string(branch)});
}

bool is_cheap_cond(const Params& params) {
  constexpr std::size_t most = 12;
  if (params.has("select")) return false;
  const CondParams cond(params);
  return std::all_of(cond.branches.begin(), cond.branches.end(), [](const Jaxpr& branch) {
    return branch->equations.size() <= most &&
           std::all_of(branch->equations.begin(), branch->equations.end(),
                       [](const Equation& equation) {
                         return Pointwise::table().find(*equation.primitive) != nullptr;
                       });
  });
}

Arrays mask_cond(std::span<const Masked> inputs, std::span<const Aval>, const Params& params,
                 const SizeValues& sizes) {
  const CondParams cond(params);
  const SizeValues outside = from_outside(sizes);
  Arrays operands;
  for (const Masked& input : inputs.subspan(1)) operands.push_back(input.padded);
  std::vector<Function> branches;
  for (const Jaxpr& branch : cond.branches)
    branches.push_back([&](std::span<const Array> arrays) {
      std::vector<Masked> values;
      for (std::size_t i = 0; i < arrays.size(); ++i)
        values.push_back({arrays[i], branch->avals[i]});
      Arrays outputs;
      for (const Masked& output : eval_masked(branch, values, outside))
        outputs.push_back(output.padded);
      return outputs;
    });
  return flat::cond(inputs[0].padded, branches, operands, "cond", {}, cond.select);
}

PrunedEquation prune_cond(const Params& params, Flags outputs) {
  CondParams cond(params);
  Flags inputs = none_of(cond.branches[0]);
  for (const Jaxpr& branch : cond.branches) {
    const Flags mine = prune_jaxpr(branch, outputs, none_of(branch))->inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = inputs[i] || mine[i];
  }
  for (Jaxpr& branch : cond.branches) branch = prune_jaxpr(branch, outputs, inputs)->jaxpr;
  inputs.insert(inputs.begin(), true);  // the index
  return {cond.to_params(), std::move(inputs), std::move(outputs)};
}

}  // namespace

// --- The block ----------------------------------------------------------------------------------

CondParams::CondParams(const Params& params)
    : branches(open_bodies(params).get<std::vector<Jaxpr>>("branches")) {
  if (params.has("select")) select = params.flag("select");
  if (branches.empty()) throw InternalError("cond: there are no branches");
}

Params CondParams::to_params() const {
  std::vector<Params::Entry> entries{{"branches", branches}};
  if (select) entries.emplace_back("select", *select);
  return close_bodies(Params(std::move(entries)));
}

constinit const Primitive cond_p{"cond"};
static const auto cond_def =
    define(cond_p, "Applies the branch that the first operand, an int32 scalar, chooses.")
        .family(holds_programs())
        .operands_at_least(1)
        .refuse<Eval>(runs_elsewhere)
        .rule<Prune>(prune_cond)
        .rule<Linearize>(linearize_cond)
        .rule<Transpose>(transpose_cond)
        .rule<Batch>(batch_cond)
        .rule<Mask>(mask_cond)
        .rule<Steps>(visit_cond)
        .rule<Diverge>({batch_cond_together,
                        [](const Params& params, const Flags& batched) {
                          return !selects(params) && batched[0];
                        },
                        is_cheap_cond})
        .rule<Emit>([](loops::Writer& w, const Equation& equation,
                       std::span<const loops::Tensor> inputs) {
          const CondParams cond(equation.params);
          Flags owned;
          for (std::size_t i = 1; i < inputs.size(); ++i) owned.push_back(w.is_owned(i));
          return w.branch(w.elements_of(inputs[0])[0], cond.branches.size(), [&](std::size_t i) {
            return w.lower(cond.branches[i], {inputs.begin() + 1, inputs.end()}, owned);
          });
        })
        .rule<Bodies>([](const Params& params) {
          std::vector<Body> bodies;
          for (const Jaxpr& branch : CondParams(params).branches)
            bodies.push_back(
                {branch, Body::Runs::alternatively, 1, false, operands_from(1, branch)});
          return bodies;
        })
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const CondParams cond(params);
          std::vector<Aval> outputs = cond.branches[0]->output_avals();
          for (const Jaxpr& branch : cond.branches) {
            require_inputs(
                "cond", inputs,
                concatenate(std::vector<Aval>{{{}, DType::int32}}, branch->input_avals()), branch);
            require_inputs("cond", branch->output_avals(), outputs, branch);
            for (std::size_t i = 0; i < outputs.size(); ++i)
              outputs[i].weak &= branch->output_avals()[i].weak;
          }
          return outputs;
        })
        .rule<Samples>([] {
          auto branch = [](const Primitive& primitive) {
            Builder builder;
            const Var x = builder.add_binder({{2, 3}, DType::float64});
            const Var y = builder.add_binder({{2, 3}, DType::float64});
            const Var first = builder.add(primitive, {x}, {}, {})[0];
            const Var second = builder.add(mul_p, {first, y}, {}, {})[0];
            return builder.close({second, first});
          };
          auto other = [] {  // its derivative has another form
            Builder builder;
            const Var x = builder.add_binder({{2, 3}, DType::float64});
            const Var y = builder.add_binder({{2, 3}, DType::float64});
            const Var sum = builder.add(add_p, {x, y}, {}, {})[0];
            return builder.close({sum, builder.add(mul_p, {sum, sum}, {}, {})[0]});
          };
          const Sample::Input index{{{}, DType::int32}, Sample::Input::Values::indices, 2};
          const Sample::Input input{{{2, 3}, DType::float64}};
          std::vector<Sample> samples;
          for (const Jaxpr& second : {branch(tanh_p), other()})
            samples.push_back(
                {{index, input, input}, {{"branches", std::vector<Jaxpr>{branch(sin_p), second}}}});
          return samples;
        });

namespace {

// --- The function --------------------------------------------------------------------------------

// The index of the chosen branch as an int32 scalar, from a bool or an integer.
Array index_of(const Array& index, std::size_t num_branches, std::string_view name) {
  const bool is_switch = name == "switch";
  const std::string what = std::string(name) + ": the " + (is_switch ? "index" : "predicate") +
                           " is " + index.aval().to_string() + ", and should be ";
  if (index.ndim() != 0)
    throw ShapeError(what + "a scalar",
                     is_switch ? "give one index, or one for each example under vmap"
                               : "reduce it with all or any, or choose by element with where");
  if (index.dtype() != DType::bool_ && !is_integer(index.dtype()))
    throw DtypeError(what + "a bool or an integer", "compare it with a number");
  if (index.dtype() == DType::bool_) return lax::convert_element_type(index, DType::int32);
  // Clamped before the conversion, which could wrap.
  const Array last = Array::literal(double(num_branches) - 1, index.dtype());
  const Array first = Array::literal(0, index.dtype());
  return lax::convert_element_type(lax::max(lax::min(index, last), first), DType::int32);
}

// Branches as functions of the operands and of every array that any of them captures.
struct Branches {
  std::vector<Jaxpr> jaxprs;
  Arrays captured;
};

Branches trace_branches(const std::vector<Function>& functions, const std::vector<Aval>& avals,
                        std::string_view name) {
  std::vector<Traced> traced;
  Branches result;
  std::vector<std::vector<std::size_t>> places;  // by branch: of its captured arrays in `captured`
  for (const Function& function : functions) {
    traced.push_back(make_jaxpr(function, avals, name));
    auto& mine = places.emplace_back();
    for (const Array& array : traced.back().captured) {
      std::size_t place = 0;
      while (place < result.captured.size() && !result.captured[place].is_same(array)) ++place;
      if (place == result.captured.size()) result.captured.push_back(array);
      mine.push_back(place);
    }
  }
  const std::vector<Aval> all = concatenate(avals, avals_of(result.captured));
  for (std::size_t b = 0; b < traced.size(); ++b) {
    const bool same = places[b].size() == result.captured.size() &&
                      std::is_sorted(places[b].begin(), places[b].end());
    result.jaxprs.push_back(same ? traced[b].jaxpr
                                 : make_closed_jaxpr(
                                       [&](std::span<const Array> inputs) {
                                         Arrays arguments = slice(inputs, 0, avals.size());
                                         for (std::size_t place : places[b])
                                           arguments.push_back(inputs[avals.size() + place]);
                                         return eval_jaxpr(traced[b].jaxpr, arguments);
                                       },
                                       all, traced[b].jaxpr->sizes));
  }
  return result;
}

// Names the case in which a branch is taken, for messages.
std::string place_of(std::string_view name, std::size_t branch) {
  if (name == "cond") return branch == 0 ? "where the predicate is false" : "where it is true";
  return "in branch " + std::to_string(branch);
}

// Where the wider of two differing results got its dtype, for messages.
std::string where_one_widens(const Jaxpr& a, const Jaxpr& b, std::size_t output) {
  const DType of_a = a->output_avals()[output].dtype, of_b = b->output_avals()[output].dtype;
  return promote_types(of_a, of_b) == of_a ? where_it_widens(a, a->outputs[output], of_b)
                                           : where_it_widens(b, b->outputs[output], of_a);
}

// The types of the results common to all branches. A weak type yields to a strong one.
std::vector<Aval> common_outputs(const std::vector<Jaxpr>& branches, std::string_view name,
                                 const flat::OutputName& output_name) {
  std::vector<Aval> common = branches[0]->output_avals();
  for (std::size_t b = 1; b < branches.size(); ++b) {
    const std::vector<Aval> outputs = branches[b]->output_avals();
    if (outputs.size() != common.size())
      throw TreeError(std::string(name) + ": there are " + std::to_string(common.size()) +
                          " results " + place_of(name, 0) + ", and " +
                          std::to_string(outputs.size()) + " " + place_of(name, b),
                      "return the same structure from every branch");
    for (std::size_t i = 0; i < common.size(); ++i) {
      const std::string what = std::string(name) + ": " +
                               (output_name ? output_name(i) : "output " + std::to_string(i)) +
                               " is " + common[i].to_string() + " " + place_of(name, 0) + ", and " +
                               outputs[i].to_string() + " " + place_of(name, b);
      if (!(common[i].shape == outputs[i].shape))
        throw ShapeError(what, "return arrays of the same shape from every branch");
      if (common[i].dtype != outputs[i].dtype && !common[i].weak && !outputs[i].weak)
        throw DtypeError(what + where_one_widens(branches[0], branches[b], i),
                         "convert one of them with astype");
      const WeakDType type = promote_weak(common[i].type(), outputs[i].type());
      common[i].dtype = type.dtype;
      common[i].weak = type.weak;
      common[i].varying |= outputs[i].varying;
    }
  }
  return common;
}

}  // namespace

Arrays flat::cond(const Array& index, const std::vector<Function>& branches,
                  std::span<const Array> operands, std::string_view name,
                  const OutputName& output_name, std::optional<bool> select) {
  if (branches.empty())
    throw ValueError(std::string(name) + ": there are no branches", "give at least one function");
  const Array chosen = index_of(index, branches.size(), name);
  Branches traced = trace_branches(branches, avals_of(operands), name);
  const MeshAxes differing = chosen.aval().varying;
  require_same_ways(differing, traced.jaxprs, name,
                    name == "switch" ? "the index" : "the predicate");
  std::vector<Aval> outputs = common_outputs(traced.jaxprs, name, output_name);
  for (Aval& output : outputs) output.varying |= differing;
  for (Jaxpr& branch : traced.jaxprs) {
    if (branch->output_avals() == outputs) continue;
    branch = make_closed_jaxpr(
        [&, body = branch](std::span<const Array> inputs) {
          Arrays results = eval_jaxpr(body, inputs);
          for (std::size_t i = 0; i < results.size(); ++i)
            results[i] = varying_along(yielded(results[i], outputs[i].dtype, outputs[i].weak, name),
                                       outputs[i].varying);
          return results;
        },
        branch->input_avals(), branch->sizes);
  }
  Arrays all = concatenate(Arrays(operands.begin(), operands.end()), traced.captured);
  for (Jaxpr& branch : traced.jaxprs) branch = plait::differing(branch, all, differing);
  CondParams cond;
  cond.select = select;
  return bind_cond(std::move(cond), chosen, all, traced.jaxprs);
}

namespace {

// See guarded_body.
Jaxpr guard_body(const Jaxpr& body) {
  std::vector<Aval> avals(body->input_avals().begin(), body->input_avals().end());
  avals.push_back({{}, DType::bool_});
  const Function real = [&](std::span<const Array> operands) { return eval_jaxpr(body, operands); };
  const Function padding = [&](std::span<const Array>) {
    Arrays zeros;
    for (const Aval& aval : body->output_avals()) zeros.push_back(lax::zeros_like(aval));
    return zeros;
  };
  return make_closed_jaxpr(
      [&](std::span<const Array> operands) {
        return flat::cond(operands.back(), {padding, real}, operands.first(operands.size() - 1));
      },
      avals, body->sizes);
}

[[maybe_unused]] const bool guards_bodies = (set_body_guard(guard_body), true);

}  // namespace
}  // namespace plait
