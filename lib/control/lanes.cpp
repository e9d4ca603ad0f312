// lanes: a body of one example, applied to a batch whose examples diverge. vmap makes it.
// Differentiation and further batching keep it a body of one example.
//
// Its decomposition comes last: rewritten earlier, a zero cotangent would be multiplied by the NaN
// of a branch not taken. Equations that do not diverge run on all examples together. Each one that
// does becomes a `lanes` equation of its own, which kernels run for the examples that need it
// (lib/backends/control/lanes.cpp). Where they cannot, all examples run all of it, and each selects
// its own results: a loop runs until its last example ends, examples that have ended keep their
// carry, and each branch runs on all examples.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/stack.h>
#include <plait/control/primitives.h>
#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/bodies.h>
#include <plait/rules/emit.h>
#include <plait/rules/guard.h>
#include <plait/rules/inline.h>
#include <plait/rules/interpret.h>
#include <plait/rules/prune.h>
#include <plait/rules/speculate.h>
#include <plait/rules/steps.h>
#include <plait/transforms/laned.h>

#include "control/alone.h"
#include "control/bodies.h"
#include "primitives/indexing/indexing.h"

namespace plait {

namespace {

// --- Decomposition -------------------------------------------------------------------------------

std::vector<Aval> example_avals(std::span<const Batched> inputs) {
  std::vector<Aval> avals;
  for (const Batched& input : inputs) avals.push_back(example_aval(input));
  return avals;
}

// vmap where only some examples are live.
struct LiveInterpreter final : LiveExamples {
  using Value = Batched;
  using LiveExamples::LiveExamples;

  Value lift(const Array& array) { return {array, std::nullopt}; }

  std::vector<Value> process(const Equation& equation, std::span<const Value> inputs) {
    const Primitive& primitive = *equation.primitive;
    if (Inline::table().find(primitive))
      return interpret(*this, open_body(equation.params), {inputs.begin(), inputs.end()});
    if (const Diverge::Rule* rule = Diverge::table().find(primitive)) {
      if (!together && partitions(equation, inputs))
        return bind_lanes(primitive, size, inputs, equation.params, live);
      return rule->batch(*this, inputs, equation.params);
    }
    if (live.is_valid()) {
      // Where kernels run examples separately, dead examples hold the values of a live one: what
      // raises for them raises for that one, too.
      const Guard::Rule* guard = guard_of(primitive, equation.params);
      if (guard && (together || !guard->only_raises))
        return process_guarded(*guard, equation, inputs);
      if (is_effectful(equation)) return process_effect(equation, inputs);
    }
    if (std::none_of(inputs.begin(), inputs.end(), is_batched)) {
      Arrays arrays;
      for (const Value& input : inputs) arrays.push_back(input.array);
      return lifted(bind(primitive, arrays, equation.params));
    }
    if (const Batch::Rule* batch = Batch::table().find(primitive))
      return (*batch)(size, inputs, equation.params);
    return run(decomposition(primitive, example_avals(inputs), equation.params), inputs);
  }

  std::vector<Value> run(const Jaxpr& body, std::span<const Value> inputs) const override {
    return interpret(LiveInterpreter(*this), body, {inputs.begin(), inputs.end()});
  }
  std::vector<Value> run_marked(const Array& marks, const Jaxpr& body,
                                std::span<const Value> inputs) const override {
    return interpret(LiveInterpreter(size, marks, true), body, {inputs.begin(), inputs.end()});
  }

 private:
  static bool is_batched(const Value& value) { return value.dim.has_value(); }
  static std::vector<Value> lifted(Arrays arrays) {
    std::vector<Value> values;
    for (Array& array : arrays) values.push_back({std::move(array), std::nullopt});
    return values;
  }
  static bool partitions(const Equation& equation, std::span<const Value> inputs) {
    Flags batched;
    for (const Value& input : inputs) batched.push_back(is_batched(input));
    return diverges(equation, batched) && !is_cheap_together(equation);
  }

  // What raises or has an effect runs for live examples only. If all examples share the operands,
  // it runs once if any example is live.
  std::vector<Value> process_guarded(const Guard::Rule& guard, const Equation& equation,
                                     std::span<const Value> inputs) {
    const bool shared =
        !is_effectful(equation) && std::none_of(inputs.begin(), inputs.end(), is_batched);
    std::vector<Aval> avals{{{}, DType::bool_}};
    std::vector<Value> values{shared ? Value{lax::reduce_or(live, std::vector<int>{0}), {}}
                                     : Value{live, 0}};
    for (const Value& input : inputs) {
      avals.push_back(example_aval(input));
      values.push_back(input);
    }
    const Jaxpr guarded = make_closed_jaxpr(
        [&](std::span<const Array> arrays) {
          return guard.apply(arrays[0], arrays.subspan(1), equation.params);
        },
        avals);
    return interpret(LiveInterpreter{size, {}}, guarded, values);
  }

  // Runs the live examples one after another.
  std::vector<Value> process_effect(const Equation& equation, std::span<const Value> inputs) {
    const Arrays arrays = to_front(inputs, size);
    const std::vector<Aval> outputs =
        infer(*equation.primitive, example_avals(inputs), equation.params);
    const Function happens = [&](std::span<const Array> operands) {
      return Arrays(bind(*equation.primitive, operands, equation.params));
    };
    const Function does_not = [&](std::span<const Array>) {
      Arrays zeros;
      for (const Aval& aval : outputs) zeros.push_back(lax::zeros_like(aval));
      return zeros;
    };
    const Function step = [&](std::span<const Array> now) {
      return flat::cond(now[0], {does_not, happens}, now.subspan(1));
    };
    return in_front(flat::scan(step, {}, concatenate(Arrays{live}, arrays), {size, false}).ys);
  }
};

// Runs a body on all examples at once. The marked arrays have the batch axis first.
Arrays run_together(LiveInterpreter interpreter, const Jaxpr& body, const Flags& batched,
                    std::span<const Array> arrays) {
  std::vector<Batched> values;
  for (std::size_t i = 0; i < arrays.size(); ++i)
    values.push_back({arrays[i], batched[i] ? std::optional<int>(0) : std::nullopt});
  Arrays outputs;
  for (const Batched& output : interpret(interpreter, body, values))
    outputs.push_back(batch_to_front(output, interpreter.size));
  return outputs;
}

std::vector<Aval> with_lane(std::span<const Aval> examples, const Flags& batched, Dim size) {
  std::vector<Aval> avals(examples.begin(), examples.end());
  for (std::size_t i = 0; i < avals.size(); ++i)
    if (batched[i]) avals[i].shape.insert(0, size);
  return avals;
}

// The body over all examples. Kernels run examples separately along the outermost lane only.
Jaxpr program_of(const LanesParams& lanes) {
  Jaxpr program = lanes.body;
  const bool is_last = program->equations.size() <= 1 && lanes.lanes.size() == 1;
  for (auto lane = lanes.lanes.rbegin(); lane != lanes.lanes.rend(); ++lane) {
    const bool outermost = lane + 1 == lanes.lanes.rend();
    const Flags batched(lane->batched.begin() + std::ptrdiff_t(num_before(lanes)),
                        lane->batched.end());
    std::vector<Aval> avals = with_lane(program->input_avals(), batched, lane->size);
    if (lanes.guarded) avals.insert(avals.begin(), {{lane->size}, DType::bool_});
    program = make_closed_jaxpr(
        [&](std::span<const Array> arrays) {
          LiveInterpreter interpreter{lane->size, {}, !outermost || is_last};
          if (lanes.guarded) interpreter.live = arrays[0];
          return run_together(interpreter, program, batched, arrays.subspan(num_before(lanes)));
        },
        avals, program->sizes);
  }
  return program;
}

// Merges several lanes into one. Nullopt for named sizes and stacks, and where broadcasting
// operands that some lanes share would take too much memory.
std::optional<Arrays> bind_as_one(const LanesParams& lanes, std::span<const Array> inputs) {
  constexpr std::int64_t few_bytes = 1 << 20;
  std::int64_t num_examples = 1, copied = 0, own = 0;
  for (const Lane& lane : lanes.lanes) {
    if (!lane.size.is_constant()) return std::nullopt;
    num_examples *= lane.size.constant();
  }
  Flags batched;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool guard = lanes.guarded && i == 0;
    const Aval example = guard ? Aval{{}, DType::bool_} : lanes.body->avals[i - num_before(lanes)];
    std::size_t count = 0;
    for (const Lane& lane : lanes.lanes) count += lane.batched[i];
    batched.push_back(count > 0);
    std::int64_t bytes = num_examples * size_of(example.dtype);
    for (Dim dim : example.shape) {
      if (!dim.is_constant()) return std::nullopt;
      bytes *= dim.constant();
    }
    if (example.stack > 0 && count > 0) return std::nullopt;
    if (count > 0) (count == lanes.lanes.size() ? own : copied) += bytes;
  }
  for (const Aval& output : lanes.body->output_avals())
    if (output.stack > 0) return std::nullopt;
  if (copied > std::max(few_bytes, 2 * own)) return std::nullopt;
  const int num_lanes = int(lanes.lanes.size());
  Arrays operands;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!batched[i]) {
      operands.push_back(inputs[i]);
      continue;
    }
    Shape all, flat{num_examples};
    std::vector<int> axes;
    for (int lane = 0; lane < num_lanes; ++lane) {
      if (lanes.lanes[lane].batched[i]) axes.push_back(lane);
      all.push_back(lanes.lanes[lane].size);
    }
    for (int axis = int(axes.size()), place = num_lanes; axis < inputs[i].ndim(); ++axis, ++place) {
      axes.push_back(place);
      all.push_back(inputs[i].shape(axis));
      flat.push_back(inputs[i].shape(axis));
    }
    operands.push_back(lax::reshape(lax::broadcast_in_dim(inputs[i], all, axes), flat));
  }
  LanesParams one = lanes;
  one.lanes = {{num_examples, batched}};
  one.axes = {};
  for (const Lane& lane : lanes.lanes) one.axes.push_back(lane.size);
  if (lanes.axes.rank() > 0) {  // the innermost lane is itself a merge
    one.axes.erase(one.axes.rank() - 1);
    for (Dim size : lanes.axes) one.axes.push_back(size);
  }
  Arrays outputs = bind(lanes_p, operands, one.to_params());
  for (Array& output : outputs) {
    Shape shape;
    for (const Lane& lane : lanes.lanes) shape.push_back(lane.size);
    for (int axis = 1; axis < output.ndim(); ++axis) shape.push_back(output.shape(axis));
    output = lax::reshape(output, shape);
  }
  return outputs;
}

// Several guarded lanes, as unguarded lanes of a cond on the guard.
Arrays bind_guard_as_branch(const LanesParams& lanes, std::span<const Array> inputs) {
  std::vector<Aval> avals(lanes.body->input_avals().begin(), lanes.body->input_avals().end());
  avals.insert(avals.begin(), Aval{{}, DType::bool_});
  LanesParams now = lanes;
  now.guarded = false;
  now.body = make_closed_jaxpr(
      [&](std::span<const Array> arrays) {
        const Function nothing = [&](std::span<const Array>) {
          Arrays zeros;
          for (const Aval& aval : lanes.body->output_avals())
            zeros.push_back(lax::zeros_like(aval));
          return zeros;
        };
        const Function all = [&](std::span<const Array> operands) {
          return eval_jaxpr(lanes.body, operands);
        };
        return flat::cond(arrays[0], {nothing, all}, arrays.subspan(1));
      },
      avals, lanes.body->sizes);
  return bind(lanes_p, inputs, now.to_params());
}

Arrays decompose_lanes(std::span<const Array> inputs, const Params& params) {
  const LanesParams lanes(params);
  if (lanes.lanes.size() > 1) {
    if (std::optional<Arrays> outputs = bind_as_one(lanes, inputs)) return *std::move(outputs);
    if (lanes.guarded) return bind_guard_as_branch(lanes, inputs);
  }
  struct Decomposed {
    using Result = Jaxpr;
    Params without_body;
    bool operator==(const Decomposed&) const = default;
  };
  const auto program = params.get<Jaxpr>("body")->memo.get(Decomposed{params.without("body")},
                                                           [&] { return program_of(lanes); });
  if (!lanes.guarded || lanes.lanes[0].batched[0]) return eval_jaxpr(*program, inputs);
  Arrays operands(inputs.begin(), inputs.end());
  operands[0] = lax::broadcast_in_dim(inputs[0], {lanes.lanes[0].size}, std::vector<int>{});
  return eval_jaxpr(*program, operands);
}

// --- Rewriting the body --------------------------------------------------------------------------

Differentiated linearize_lanes(std::span<const Array> primals, std::span<const Tangent> tangents,
                               const Params& params, Trace* linear) {
  const LanesParams lanes(params);
  if (linear != Trace::current()) return linearize_laned(lanes_p, lanes, primals, tangents, linear);
  // Forward mode: one equation over primals and tangents.
  const auto jvp = jvp_jaxpr(lanes.body, nonzero(tangents.subspan(num_before(lanes))));
  const std::size_t first = num_before(lanes);
  LanedEquation<LanesParams> both(lanes_p, lanes, jvp->jaxpr, primals);
  for (std::size_t i = first; i < primals.size(); ++i) both.add_like(primals[i], i);
  for (std::size_t i = first; i < primals.size(); ++i)
    if (!tangents[i].is_zero()) both.add_like(tangents[i].array(), i);
  const std::size_t num_outputs = lanes.body->outputs.size();
  const Arrays results = both.bind();
  Differentiated result{slice(results, 0, num_outputs), {}};
  result.tangents = spread(slice(results, num_outputs, results.size()), jvp->nonzero_outputs,
                           avals_of(result.outputs));
  return result;
}

Tangents transpose_lanes(std::span<const Tangent> cotangents,
                         std::span<const TransposeInput> inputs, const Params& params) {
  return transpose_laned(lanes_p, LanesParams(params), cotangents, inputs);
}

// Lanes nested in lanes.
std::vector<Batched> batch_lanes_within(const LiveExamples& examples,
                                        std::span<const Batched> inputs, const Params& params) {
  if (examples.together)
    return examples.run(decomposition(lanes_p, example_avals(inputs), params), inputs);
  LanesParams lanes(params);
  std::vector<Batched> operands(inputs.begin(), inputs.end());
  const Array& live = examples.live;
  if (live.is_valid() && lanes.guarded) {
    const Array guard = batch_to_front(operands[0], examples.size);
    const Array mine = lax::broadcast_in_dim(live, guard.shape(), std::vector<int>{0});
    operands[0] = {lax::bitwise_and(mine, guard), 0};
  } else if (live.is_valid()) {
    lanes.guarded = true;
    for (Lane& lane : lanes.lanes) lane.batched.insert(lane.batched.begin(), false);
    operands.insert(operands.begin(), Batched{live, 0});
  }
  return batch_laned(lanes_p, std::move(lanes), examples.size, operands);
}

void visit_lanes(std::span<const Array> inputs, const Params& params,
                 std::span<const std::int64_t> element, const Steps::Visit& visit) {
  const LanesParams lanes(params);
  Arrays example = example_of(lanes.lanes, element, inputs);
  if (lanes.guarded) example.erase(example.begin());
  visit({lanes.body, example, "vmap", example_text(lanes.lanes, element)});
}

// Lanes of a single cheap equation are cheap.
bool are_cheap_lanes(const Params& params) {
  const Jaxpr body = LanesParams(params).body;
  return body->equations.size() == 1 && is_cheap_together(body->equations[0]);
}

std::vector<Batched> batch_lanes(Dim size, std::span<const Batched> inputs, const Params& params) {
  return batch_laned(lanes_p, LanesParams(params), size, inputs);
}

PrunedEquation prune_lanes(const Params& params, Flags outputs) {
  LanesParams lanes(params);
  if (lanes.is_divergent()) {  // a kernel runs a single equation with all of its outputs
    const Equation& equation = lanes.body->equations[0];
    outputs = rule<Prune>(*equation.primitive)(equation.params, outputs)->outputs;
  }
  const auto pruned = prune_jaxpr(lanes.body, outputs, none_of(lanes.body));
  lanes.body = pruned->jaxpr;
  Flags inputs = pruned->inputs;
  if (lanes.guarded) inputs.insert(inputs.begin(), true);
  for (Lane& lane : lanes.lanes) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i]) lane.batched[next++] = lane.batched[i];
    lane.batched.resize(next);
  }
  return {lanes.to_params(), std::move(inputs), std::move(outputs)};
}

}  // namespace

// --- The block ----------------------------------------------------------------------------------

LanesParams::LanesParams(const Params& params) : body(open_bodies(params).get<Jaxpr>("body")) {
  if (params.has("guarded")) guarded = params.flag("guarded");
  if (params.has("axes")) axes = params.get<Shape>("axes");
  lanes = lanes_of(params, std::size_t(body->num_binders) + (guarded ? 1 : 0), body->outputs.size(),
                   "lanes");
}

Params LanesParams::to_params() const {
  std::vector<Params::Entry> entries{{"body", body}};
  add_lanes(entries, lanes, body->outputs.size());
  if (guarded) entries.emplace_back("guarded", true);
  if (axes.rank() > 0) entries.emplace_back("axes", axes);
  return close_bodies(Params(std::move(entries)));
}

bool LanesParams::is_divergent() const {
  if (lanes.size() != 1 || body->equations.size() != 1) return false;
  const Equation& equation = body->equations[0];
  if (equation.inputs.size() != std::size_t(body->num_binders) ||
      equation.outputs.size() != body->outputs.size())
    return false;
  for (std::size_t i = 0; i < equation.inputs.size(); ++i)
    if (!equation.inputs[i].is_var() || equation.inputs[i].var().id != int(i)) return false;
  for (std::size_t i = 0; i < equation.outputs.size(); ++i)
    if (!body->outputs[i].is_var() || body->outputs[i].var().id != equation.outputs[i].id)
      return false;
  return diverges(equation, {lanes[0].batched.begin() + (guarded ? 1 : 0), lanes[0].batched.end()});
}

namespace {

// Numbers of many examples, side by side.
loops::Tensors emit_numbers(loops::Writer& w, const LanesParams& lanes,
                            std::span<const loops::Tensor> inputs) {
  const Lane& lane = lanes.lanes[0];
  loops::Tensors results, operands(inputs.begin(), inputs.end());
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (lane.batched[i]) operands[i] = w.in_memory(operands[i]);
  for (const Aval& output : lanes.body->output_avals())
    results.push_back(w.make({{lane.size}, output.dtype}));
  w.for_each_apart(lane.size.constant(), [&](const loops::Index& example) {
    loops::Tensors ones;
    for (std::size_t i = 0; i < operands.size(); ++i)
      ones.push_back(lane.batched[i] ? loops::Tensor{{{}, operands[i].aval.dtype},
                                                     {w.element(operands[i], {&example, 1})}}
                                     : operands[i]);
    const loops::Tensors next = w.lower(lanes.body, std::move(ones), Flags(operands.size(), false));
    for (std::size_t i = 0; i < next.size(); ++i) {
      loops::Place place = results[i].place;
      loops::add_index(place, example, results[i].strides[0]);
      w.store(place, w.elements_of(next[i])[0]);
    }
  });
  return results;
}

loops::Tensors emit_lanes(loops::Writer& w, const Equation& equation,
                          std::span<const loops::Tensor> inputs) {
  const LanesParams lanes(equation.params);
  if (lanes.lanes.size() != 1 || lanes.guarded || lanes.lanes[0].sums_any())
    w.refuse("`lanes` of several kinds");
  const Lane& lane = lanes.lanes[0];
  const std::vector<Aval> outputs = lanes.body->output_avals();
  const std::span<const Aval> avals = lanes.body->input_avals();
  const auto is_number = [](const Aval& aval) { return aval.rank() == 0; };
  // Threads of a GPU leave their loops together; on a CPU, see codegen/side_by_side.h.
  constexpr std::int64_t many = 4096;
  if (!w.has_kernels() && lane.size.constant() >= many &&
      std::all_of(avals.begin(), avals.end(), is_number) &&
      std::all_of(outputs.begin(), outputs.end(), is_number))
    return emit_numbers(w, lanes, inputs);
  if (!is_same_alone(lanes.body, lane.batched, lane.size.constant()))
    w.refuse("sums of one example that have another order among others");
  const Equation* const only =
      lanes.body->equations.size() == 1 ? &lanes.body->equations[0] : nullptr;
  const std::size_t num_carry =
      only && *only->primitive == while_p ? WhileParams(only->params).num_carry : 0;
  return w.for_each_example(lane.size.constant(), lane.batched,
                            lanes.is_divergent() ? num_carry : 0, outputs,
                            [&](loops::Tensors operands, const Flags& owned) {
                              return w.lower(lanes.body, std::move(operands), owned);
                            });
}

}  // namespace

constinit const Primitive lanes_p{"lanes"};
static const auto lanes_def =
    define(lanes_p, "Applies a body of one example to each, whichever way each one goes.")
        .family(holds_programs())
        .rule<Prune>(prune_lanes)
        .rule<Decompose>(decompose_lanes)
        .rule<Linearize>(linearize_lanes)
        .rule<Transpose>(transpose_lanes)
        .rule<Batch>(batch_lanes)
        .rule<Steps>(visit_lanes)
        .rule<Diverge>({batch_lanes_within, {}, are_cheap_lanes})
        .rule<Emit>(emit_lanes)
        .rule<Bodies>([](const Params& params) {
          const LanesParams lanes(params);
          return std::vector<Body>{{lanes.body, Body::Runs::per_example,
                                    num_examples_of(lanes.lanes), true,
                                    operands_from(lanes.guarded ? 1 : 0, lanes.body)}};
        })
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const LanesParams lanes(params);
          std::vector<Aval> wanted(lanes.body->input_avals().begin(),
                                   lanes.body->input_avals().end());
          if (lanes.guarded) wanted.insert(wanted.begin(), Aval{{}, DType::bool_});
          std::vector<Aval> outputs = lanes.body->output_avals();
          for (auto lane = lanes.lanes.rbegin(); lane != lanes.lanes.rend(); ++lane) {
            for (std::size_t i = 0; i < wanted.size(); ++i)
              if (lane->batched[i]) wanted[i].shape.insert(0, lane->size);
            for (Aval& output : outputs) output.shape.insert(0, lane->size);
          }
          require_inputs("lanes", inputs, wanted, lanes.body);
          return outputs;
        })
        .rule<Samples>([] {  // conds and a loop that diverge; their last operand is unbatched
          std::vector<Sample> samples;
          auto add = [&](const Primitive& primitive, const Sample& one) {
            Builder builder;
            std::vector<Atom> operands;
            for (const Sample::Input& input : one.inputs)
              operands.push_back(builder.add_binder(input.aval));
            const std::vector<Var> outputs = builder.add(primitive, operands, one.params, {});
            LanesParams lanes;
            lanes.body = builder.close({outputs.begin(), outputs.end()});
            lanes.lanes = {{4, {true, true, false}}};
            samples.push_back({one.inputs, lanes.to_params()});
            Sample& sample = samples.back();
            for (int i = 0; i < 2; ++i) sample.inputs[i].aval.shape.insert(0, 4);
          };
          for (const Sample& one : rule<Samples>(cond_p)()) add(cond_p, one);
          add(while_p, rule<Samples>(while_p)()[0]);
          return samples;
        });

std::vector<Batched> bind_lanes(const Primitive& primitive, Dim size,
                                std::span<const Batched> inputs, const Params& params,
                                const Array& live) {
  LanesParams lanes;
  std::vector<Aval> avals;
  for (const Batched& input : inputs) avals.push_back(example_aval(input));
  lanes.body = make_closed_jaxpr(
      [&](std::span<const Array> arrays) { return Arrays(bind(primitive, arrays, params)); },
      avals);
  // The batch becomes the only lane.
  if (!live.is_valid()) return batch_laned(lanes_p, lanes, size, inputs);
  lanes.guarded = true;
  std::vector<Batched> operands{{live, 0}};
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  return batch_laned(lanes_p, lanes, size, operands);
}

Jaxpr for_rows(const Jaxpr& body, const Flags& batched, Dim num_rows) {
  std::vector<Aval> avals = with_lane(body->input_avals(), batched, num_rows);
  avals.insert(avals.begin(), {{num_rows}, DType::bool_});
  return make_closed_jaxpr(
      [&](std::span<const Array> arrays) {
        return run_together(LiveInterpreter{num_rows, arrays[0]}, body, batched, arrays.subspan(1));
      },
      avals);
}

}  // namespace plait
