// The cut of a masked function into stages. See stages.h.
//
// First, each equation is told whether it may be packed. Then levels are counted along the
// dependencies: packed stages are even levels, grouped ones odd. What must be packed or grouped is
// there as early as possible; anything else follows its operands, or goes on to its readers where
// less is then copied from stage to stage.
// SPDX-License-Identifier: Apache-2.0
#include "stages.h"

#include <plait/primitives/primitives.h>
#include <plait/rules/inline.h>
#include <plait/rules/motion.h>
#include <plait/rules/separate.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "ir/environment.h"
#include "ir/splice.h"

namespace plait {
namespace {

// The program with the bodies of chosen equations, which apply one, in place of them.
Jaxpr with_bodies_inlined(const Jaxpr& program, const std::function<bool(std::size_t)>& chosen) {
  Builder builder;
  std::vector<Atom> binders;
  for (const Aval& aval : program->input_avals()) binders.push_back(builder.add_binder(aval));
  Environment environment(program, std::move(binders));
  for (std::size_t e = 0; e < program->equations.size(); ++e) {
    const Equation& equation = program->equations[e];
    const std::vector<Atom> inputs = environment.read(equation.inputs);
    if (chosen(e))
      environment.set(equation.outputs, splice(builder, open_body(equation.params), inputs));
    else
      environment.set(equation.outputs,
                      builder.add(*equation.primitive, inputs, equation.params, equation.source,
                                  output_avals(*program, equation)));
  }
  return builder.close(environment.read(program->outputs), program->sizes);
}

// The next program to look at: with the bodies of calls in place of them; nullptr if it has none.
Jaxpr with_calls_inlined(const Jaxpr& program) {
  const auto is_call = [&](std::size_t e) {
    const Inline::Rule* rule = Inline::table().find(*program->equations[e].primitive);
    return rule && rule->when != Inline::When::unclaimed;
  };
  for (std::size_t e = 0; e < program->equations.size(); ++e)
    if (is_call(e)) return with_bodies_inlined(program, is_call);
  return {};
}

// What a value is, for the question whether equations on it may be packed.
struct Value {
  enum class Kind {
    shared,   // the same for all examples
    places,   // one ragged axis
    sum,      // over the places of all examples
    example,  // anything else of one example
  } kind = Kind::example;
  RaggedAxis ragged{};
};

class Analysis {
 public:
  Analysis(const MaskedParams& masked, std::int64_t least_weights)
      : names_(masked.ragged), least_weights_(least_weights) {}

  std::optional<RaggedAxis> axis_of(const Aval& aval) const {
    std::optional<RaggedAxis> found;
    for (int axis = 0; axis < aval.rank(); ++axis) {
      const Dim dim = aval.shape[axis];
      if (dim.is_constant()) continue;
      const auto at = std::find(names_.begin(), names_.end(), dim);
      if (at == names_.end() || found) return std::nullopt;
      found = RaggedAxis{std::size_t(at - names_.begin()), axis};
    }
    return found;
  }

  Value value_of(const Aval& aval, bool is_shared) const {
    if (const auto axis = axis_of(aval)) return {Value::Kind::places, *axis};
    return {is_shared && aval.shape.is_constant() ? Value::Kind::shared : Value::Kind::example, {}};
  }

  // What the results are, if the equation may be packed; empty if not.
  struct Results {
    std::vector<Value> values;
    bool is_product = false;  // with weights enough
  };
  std::optional<Results> packed(const JaxprData& program, const Equation& equation,
                                std::span<const Value> inputs) const {
    if (is_effectful(equation)) return std::nullopt;
    std::optional<std::size_t> name;
    std::vector<Aval> from, to = output_avals(program, equation);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      from.push_back(program.aval(equation.inputs[i]));
      if (inputs[i].kind == Value::Kind::shared) continue;
      if (inputs[i].kind != Value::Kind::places) return std::nullopt;
      if (name && *name != inputs[i].ragged.name) return std::nullopt;
      name = inputs[i].ragged.name;
    }
    Results results;
    for (const Aval& aval : to) {
      const auto axis = axis_of(aval);
      if (!axis && !aval.shape.is_constant()) return std::nullopt;
      if (axis && name && *name != axis->name) return std::nullopt;
      if (axis) name = axis->name;
      results.values.push_back(axis ? Value{Value::Kind::places, *axis}
                                    : Value{Value::Kind::sum, {}});
    }
    if (!name) return of_shared(equation, std::move(results));
    if (Inline::table().find(*equation.primitive)) return of_body(equation, inputs);
    const Separate::Rule* rule = Separate::table().find(*equation.primitive);
    if (!rule || !asks(*rule, equation, inputs, from, to)) return std::nullopt;
    if (*equation.primitive == dot_general_p)
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i].kind == Value::Kind::shared)
          results.is_product |= num_elements(from[i].shape.to_sizes()) >= least_weights_;
    return results;
  }

  std::vector<Value> values_of(const JaxprData& program, const Equation& equation,
                               const std::vector<Value>& known) const {
    std::vector<Value> inputs;
    for (const Atom& atom : equation.inputs)
      inputs.push_back(atom.is_var() ? known[std::size_t(atom.var().id)]
                                     : value_of(program.aval(atom), true));
    return inputs;
  }

 private:
  // Of operands without a ragged axis: shared, if no size is read.
  std::optional<Results> of_shared(const Equation& equation, Results results) const {
    std::vector<Dim> used;
    for (const auto& [name, value] : equation.params.entries()) collect_sizes(value, used);
    if (!used.empty()) return std::nullopt;
    for (Value& value : results.values) value.kind = Value::Kind::shared;
    return results;
  }

  bool asks(const Separate::Rule& rule, const Equation& equation, std::span<const Value> inputs,
            std::span<const Aval> from, std::span<const Aval> to) const {
    std::vector<std::optional<int>> of_inputs, of_outputs;
    for (const Value& input : inputs)
      of_inputs.push_back(input.kind == Value::Kind::places ? std::optional(input.ragged.axis)
                                                            : std::nullopt);
    for (const Aval& aval : to) {
      const auto axis = axis_of(aval);
      of_outputs.push_back(axis ? std::optional(axis->axis) : std::nullopt);
    }
    return rule({from, to, of_inputs, of_outputs}, equation.params);
  }

  // An equation that applies a body may be packed if all of the body's may.
  std::optional<Results> of_body(const Equation& equation, std::span<const Value> inputs) const {
    const Jaxpr body = open_body(equation.params);
    std::vector<Value> known(inputs.begin(), inputs.end());
    Results results;
    for (const Equation& inner : body->equations) {
      const std::vector<Value> operands = values_of(*body, inner, known);
      auto made = packed(*body, inner, operands);
      if (!made) return std::nullopt;
      results.is_product |= made->is_product;
      known.insert(known.end(), made->values.begin(), made->values.end());
    }
    for (const Atom& atom : body->outputs) {
      if (!atom.is_var()) return std::nullopt;
      results.values.push_back(known[std::size_t(atom.var().id)]);
      if (results.values.back().kind == Value::Kind::shared) return std::nullopt;
    }
    return results;
  }

  const std::vector<Dim> names_;
  const std::int64_t least_weights_;
};

class Cutter {
 public:
  Cutter(const MaskedParams& masked, Jaxpr body, std::int64_t least_weights)
      : masked_(masked),
        body_(std::move(body)),
        analysis_(masked, least_weights),
        equations_(body_->equations),
        summed_only_(body_->avals.size(), true) {
    find_sums();
    classify();
  }

  // With the bodies of composites that mix places in place of them, whose results may be their
  // operands; nullptr if there are none. Padding is part of such bodies: no backend claims them.
  Jaxpr with_mixing_inlined() const {
    const auto mixes = [&](std::size_t e) {
      const Equation& equation = equations_[e];
      const auto is_ragged = [&](const Atom& atom) {
        return !body_->aval(atom).shape.is_constant();
      };
      return places_[e] == Place::grouped && Inline::table().find(*equation.primitive) &&
             std::any_of(equation.inputs.begin(), equation.inputs.end(), is_ragged);
    };
    for (std::size_t e = 0; e < equations_.size(); ++e)
      if (mixes(e)) return with_bodies_inlined(body_, mixes);
    return {};
  }

  Stages run() {
    assign_levels();
    move_to_readers();
    return cut();
  }

 private:
  static constexpr int unset = -1;
  enum class Place { packed, grouped, either };

  // Values that nothing but sums over the examples reads.
  void find_sums() {
    for (const Equation& equation : equations_)
      for (const Atom& atom : equation.inputs)
        if (atom.is_var()) summed_only_[std::size_t(atom.var().id)] = false;
    for (std::size_t o = 0; o < body_->outputs.size(); ++o)
      if (const Atom& atom = body_->outputs[o]; atom.is_var() && !masked_.sums(o))
        summed_only_[std::size_t(atom.var().id)] = false;
  }

  void classify() {
    for (int i = 0; i < body_->num_binders; ++i) {
      const bool is_batched = masked_.lanes[0].batched[masked_.num_ragged() + std::size_t(i)];
      values_.push_back(analysis_.value_of(body_->avals[std::size_t(i)], !is_batched));
    }
    for (const Equation& equation : equations_) {
      auto made =
          analysis_.packed(*body_, equation, analysis_.values_of(*body_, equation, values_));
      bool sums = false;
      if (made)
        for (std::size_t i = 0; i < equation.outputs.size(); ++i)
          if (made->values[i].kind == Value::Kind::sum) {
            sums = true;
            if (!summed_only_[std::size_t(equation.outputs[i].id)]) made.reset();
            if (!made) break;
          }
      places_.push_back(!made                      ? Place::grouped
                        : sums || made->is_product ? Place::packed
                                                   : Place::either);
      for (std::size_t i = 0; i < equation.outputs.size(); ++i) {
        const Aval& aval = body_->aval(equation.outputs[i]);
        values_.push_back(made ? made->values[i] : analysis_.value_of(aval, false));
      }
    }
  }

  bool is_shared(const Equation& equation) const {
    return values_[std::size_t(equation.outputs[0].id)].kind == Value::Kind::shared;
  }

  // Packed stages are even.
  void assign_levels() {
    level_of_.assign(body_->avals.size(), unset);
    for (std::size_t e = 0; e < equations_.size(); ++e) {
      int level = unset;
      for (const Atom& atom : equations_[e].inputs)
        if (atom.is_var()) level = std::max(level, level_of_[std::size_t(atom.var().id)]);
      if (places_[e] == Place::packed)
        level = level == unset ? 0 : level + level % 2;
      else if (places_[e] == Place::grouped)
        level = level == unset ? 1 : level + 1 - level % 2;
      else if (is_shared(equations_[e]))
        level = 0;
      set_level(e, level);
    }
  }

  void set_level(std::size_t equation, int level) {
    levels_.resize(equations_.size(), unset);
    levels_[equation] = level;
    for (Var var : equations_[equation].outputs) level_of_[std::size_t(var.id)] = level;
  }

  // Elements of one place of a value.
  std::int64_t weight(Var var) const {
    std::int64_t count = 1;
    for (Dim dim : body_->aval(var).shape)
      if (dim.is_constant()) count *= dim.constant();
    return count;
  }

  void move_to_readers() {
    const int never = std::numeric_limits<int>::max();
    std::vector<int> first(body_->avals.size(), never), last(body_->avals.size(), unset);
    auto note = [&](const Atom& atom, int level) {
      if (!atom.is_var()) return;
      int &low = first[std::size_t(atom.var().id)], &high = last[std::size_t(atom.var().id)];
      low = std::min(low, level), high = std::max(high, level);
    };
    std::vector<bool> is_result(body_->avals.size(), false);
    for (const Atom& atom : body_->outputs)
      if (atom.is_var()) is_result[std::size_t(atom.var().id)] = true;
    for (std::size_t e = equations_.size(); e-- > 0;) {
      const Equation& equation = equations_[e];
      int reader = never;
      std::int64_t results = 0, operands = 0;
      for (Var var : equation.outputs) {
        reader = std::min(reader, first[std::size_t(var.id)]);
        if (is_result[std::size_t(var.id)]) reader = std::min(reader, std::max(levels_[e], 0));
        results += weight(var);
      }
      for (const Atom& atom : equation.inputs)
        if (atom.is_var() && level_of_[std::size_t(atom.var().id)] != unset &&
            last[std::size_t(atom.var().id)] < reader)
          operands += weight(atom.var());
      // A view costs nothing in a group, where it is read, and a copy in the packed places.
      const bool is_view = moves_as(*equation.primitive, Motion::layout);
      const bool pays = levels_[e] == unset || (is_view ? reader % 2 == 1 : operands <= results);
      const bool moves = places_[e] == Place::either && !is_shared(equation) && reader != never &&
                         reader > levels_[e] && pays;
      if (moves) set_level(e, reader);
      if (levels_[e] == unset) set_level(e, 0);
      for (const Atom& atom : equation.inputs) note(atom, levels_[e]);
    }
  }

  // --- The stages --------------------------------------------------------------------------------

  // The level where a result of the body is given. Only a grouped stage can sum examples, or give
  // each of them what they share.
  int level_of_result(std::size_t output) const {
    const Atom& atom = body_->outputs[output];
    const int level = atom.is_var() ? level_of_[std::size_t(atom.var().id)] : unset;
    if (level == unset) return last_grouped_;
    if (level % 2 == 1) return level;
    const Value& value = values_[std::size_t(atom.var().id)];
    const bool fits = value.kind == Value::Kind::sum ||
                      (value.kind == Value::Kind::places && !masked_.sums(output));
    return fits ? level : last_grouped_;
  }

  Stages cut() {
    int highest = 0;
    for (int level : levels_) highest = std::max(highest, level);
    last_grouped_ = highest + 1 - highest % 2;
    Stages result;
    result.num_binders = body_->num_binders;
    result.avals = body_->avals;
    for (const Value& value : values_) {
      result.shared.push_back(value.kind == Value::Kind::shared);
      result.axes.push_back(value.kind == Value::Kind::places ? std::optional(value.ragged)
                                                              : std::nullopt);
    }
    if (std::find(places_.begin(), places_.end(), Place::packed) == places_.end()) {
      std::fill(levels_.begin(), levels_.end(), 1);
      std::fill(level_of_.begin() + body_->num_binders, level_of_.end(), 1);
      last_grouped_ = highest = 1;
    }
    for (int level = 0; level <= std::max(highest, last_grouped_); ++level) {
      Stage stage = stage_at(level);
      if (!stage.outputs.empty()) result.stages.push_back(std::move(stage));
    }
    result.last_use.assign(body_->avals.size(), -1);
    for (std::size_t s = 0; s < result.stages.size(); ++s)
      for (int var : result.stages[s].inputs) result.last_use[std::size_t(var)] = int(s);
    return result;
  }

  Stage stage_at(int level) const {
    Stage stage{level % 2 == 0, {}, {}, {}};
    Builder builder;
    Environment environment(body_);
    std::vector<bool> known(body_->avals.size(), false);
    auto take = [&](const Atom& atom) {
      if (!atom.is_var() || known[std::size_t(atom.var().id)]) return;
      known[std::size_t(atom.var().id)] = true;
      environment.set(atom.var(), builder.add_binder(body_->aval(atom.var())));
      stage.inputs.push_back(atom.var().id);
    };
    for (std::size_t e = 0; e < equations_.size(); ++e) {
      if (levels_[e] != level) continue;
      const Equation& equation = equations_[e];
      for (const Atom& atom : equation.inputs) take(atom);
      for (Var var : equation.outputs) known[std::size_t(var.id)] = true;
      environment.set(
          equation.outputs,
          builder.add(*equation.primitive, environment.read(equation.inputs), equation.params,
                      equation.source, output_avals(*body_, equation)));
    }
    std::vector<Atom> outputs;
    for (int var = body_->num_binders; var < int(body_->avals.size()); ++var)
      if (level_of_[std::size_t(var)] == level && is_read_after(var, level)) {
        outputs.push_back(Var{var});
        stage.outputs.push_back({var, std::nullopt});
      }
    for (std::size_t o = 0; o < body_->outputs.size(); ++o)
      if (level_of_result(o) == level) {
        const Atom& atom = body_->outputs[o];
        take(atom);
        outputs.push_back(atom);
        stage.outputs.push_back({atom.is_var() ? atom.var().id : -1, o});
      }
    stage.body = builder.close(environment.read(outputs), body_->sizes);
    return stage;
  }

  bool is_read_after(int var, int level) const {
    auto reads = [&](const Atom& atom) { return atom == Atom(Var{var}); };
    for (std::size_t e = 0; e < equations_.size(); ++e)
      if (levels_[e] > level &&
          std::any_of(equations_[e].inputs.begin(), equations_[e].inputs.end(), reads))
        return true;
    for (std::size_t o = 0; o < body_->outputs.size(); ++o)
      if (reads(body_->outputs[o]) && level_of_result(o) > level) return true;
    return false;
  }

  const MaskedParams& masked_;
  const Jaxpr body_;
  const Analysis analysis_;
  const std::vector<Equation>& equations_;
  std::vector<bool> summed_only_;
  std::vector<Value> values_;  // by var
  std::vector<Place> places_;  // by equation
  std::vector<int> levels_;    // by equation
  std::vector<int> level_of_;  // by var; unset: an operand, or nothing but operands lead to it
  int last_grouped_ = 1;
};

}  // namespace

Stages stages_of(const MaskedParams& masked, std::int64_t least_weights) {
  Jaxpr body = masked.body;
  while (const Jaxpr inlined = with_calls_inlined(body)) body = inlined;
  while (true) {
    Cutter cutter(masked, body, least_weights);
    Jaxpr inlined = cutter.with_mixing_inlined();
    if (!inlined) return cutter.run();
    body = std::move(inlined);
    while (const Jaxpr more = with_calls_inlined(body)) body = more;
  }
}

}  // namespace plait
