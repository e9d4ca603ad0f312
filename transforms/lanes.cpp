// lanes: a body of one example, applied to many that go different ways. It comes from vmap, and
// stays a body of one example while it is differentiated and batched again.
//
// Its decomposition comes last: rewritten earlier, a zero cotangent would meet the NaN of a branch
// not taken. What does not diverge is applied to all examples together. Each equation that does
// becomes a `lanes` equation of its own, which kernels run for the examples that need it
// (lib/run/lanes.cpp). Where they cannot, all examples take part in all of it, and each takes its
// own results: a loop goes on while any example does, and examples that have ended keep their
// carry; each branch runs on all.
// SPDX-License-Identifier: Apache-2.0
#include <plait/guard.h>
#include <plait/laned.h>
#include <plait/numpy_shape.h>
#include <plait/ops.h>
#include <plait/ops_control.h>
#include <plait/trace/interpret.h>

namespace plait {
namespace {

// --- Decomposition -------------------------------------------------------------------------------

// vmap in which only some examples are live.
struct LiveInterpreter {
  using Value = Batched;
  Dim size;
  Array live;             // bool[size]; none: all of them
  bool together = false;  // whether all examples take part where they go different ways

  Value lift(const Array& array) { return {array, std::nullopt}; }

  std::vector<Value> process(const Equation& equation, std::span<const Value> inputs) {
    const Primitive& primitive = *equation.primitive;
    if (primitive == call_p)
      return interpret(*this, body_of_call(equation.params), {inputs.begin(), inputs.end()});
    if (!together && partitions(equation, inputs))
      return bind_lanes(primitive, size, inputs, equation.params, live);
    if (primitive == lanes_p)
      return together ? process_decomposed(equation, inputs)
                      : process_lanes(equation.params, inputs);
    if (primitive == cond_p) return process_cond(CondParams(equation.params), inputs);
    if (primitive == while_p) return process_while(WhileParams(equation.params), inputs);
    if (primitive == scan_p) return process_scan(ScanParams(equation.params), inputs);
    if (live.is_valid()) {
      // Where kernels part the examples, those that are not live have the values of one that is:
      // what raises for them does so for that one, too.
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
    return process_decomposed(equation, inputs);
  }

 private:
  static bool is_batched(const Value& value) { return value.dim.has_value(); }
  static std::vector<Value> lifted(Arrays arrays) {
    std::vector<Value> values;
    for (Array& array : arrays) values.push_back({std::move(array), std::nullopt});
    return values;
  }
  static std::vector<Value> in_front(const Arrays& arrays) {
    std::vector<Value> values;
    for (const Array& array : arrays) values.push_back({array, 0});
    return values;
  }
  Arrays to_front(std::span<const Value> values) const {
    Arrays arrays;
    for (const Value& value : values) arrays.push_back(batch_to_front(value, size));
    return arrays;
  }
  // By example: a where the flag is set, else b. Flags of several lanes are of the first axes.
  static Array choose(const Array& flags, const Array& a, const Array& b) {
    if (a.aval().stack > 0)
      return map_stacks(Arrays{a, b}, [&](std::span<const Array> both) {
        return choose(flags, both[0], both[1]);
      });
    std::vector<int> axes;
    for (int i = 0; i < flags.ndim(); ++i) axes.push_back(i);
    return lax::select(lax::broadcast_in_dim(flags, a.shape(), axes), a, b);
  }
  Array live_and(const Array& flags) const {
    return live.is_valid() ? lax::bitwise_and(live, flags) : flags;
  }

  static bool partitions(const Equation& equation, std::span<const Value> inputs) {
    Flags batched;
    for (const Value& input : inputs) batched.push_back(is_batched(input));
    return diverges(equation, batched) && !is_cheap_together(equation);
  }
  std::vector<Value> process_decomposed(const Equation& equation, std::span<const Value> inputs) {
    std::vector<Aval> avals;
    for (const Value& input : inputs) avals.push_back(example_aval(input));
    return interpret(*this, decomposition(*equation.primitive, avals, equation.params),
                     {inputs.begin(), inputs.end()});
  }
  // Lanes within these lanes.
  std::vector<Value> process_lanes(const Params& params, std::span<const Value> inputs) const {
    LanesParams lanes(params);
    std::vector<Value> operands(inputs.begin(), inputs.end());
    if (live.is_valid() && lanes.guarded) {
      const Array guard = batch_to_front(operands[0], size);
      const Array mine = lax::broadcast_in_dim(live, guard.shape(), std::vector<int>{0});
      operands[0] = {lax::bitwise_and(mine, guard), 0};
    } else if (live.is_valid()) {
      lanes.guarded = true;
      for (Lane& lane : lanes.lanes) lane.batched.insert(lane.batched.begin(), false);
      operands.insert(operands.begin(), Value{live, 0});
    }
    return batch_laned(lanes_p, std::move(lanes), size, operands);
  }

  std::vector<Value> process_cond(const CondParams& cond, std::span<const Value> inputs) {
    const std::vector<Value> operands(inputs.begin() + 1, inputs.end());
    if (!inputs[0].dim) {  // all go the same way
      std::vector<Function> branches;
      for (const Jaxpr& branch : cond.branches)
        branches.push_back(
            [&](std::span<const Array>) { return to_front(interpret(*this, branch, operands)); });
      return in_front(flat::cond(inputs[0].array, branches, {}));
    }
    const Array index = batch_to_front(inputs[0], size);
    const int last = int(cond.branches.size()) - 1;
    Arrays results;
    for (int b = last; b >= 0; --b) {
      const Array number = Array::literal(b, DType::int32);
      const Array mine = last == 0   ? lax::eq(index, index)
                         : b == 0    ? lax::le(index, number)
                         : b == last ? lax::ge(index, number)
                                     : lax::eq(index, number);
      const Arrays outputs = to_front(
          interpret(LiveInterpreter{size, live_and(mine), true}, cond.branches[b], operands));
      for (std::size_t i = 0; i < outputs.size(); ++i)
        if (b == last)
          results.push_back(outputs[i]);
        else
          results[i] = choose(mine, outputs[i], results[i]);
    }
    return in_front(results);
  }

  std::vector<Value> process_while(const WhileParams& loop, std::span<const Value> inputs) {
    const std::span<const Value> init = inputs.first(loop.num_carry),
                                 of_cond = inputs.subspan(loop.num_carry, loop.num_cond_consts),
                                 of_body = inputs.subspan(loop.num_carry + loop.num_cond_consts);
    auto run = [this](const Jaxpr& jaxpr, const Array& live, const Arrays& carry,
                      std::span<const Value> consts) {
      std::vector<Value> arguments = in_front(carry);
      arguments.insert(arguments.end(), consts.begin(), consts.end());
      return to_front(interpret(LiveInterpreter{size, live, true}, jaxpr, arguments));
    };
    Arrays carry = to_front(init);
    carry.insert(carry.begin(), live_and(run(loop.cond, live, carry, of_cond)[0]));
    const Function any = [](std::span<const Array> now) -> Arrays {
      return {lax::reduce_or(now[0], std::vector<int>{0})};
    };
    const Function step = [&](std::span<const Array> now) {
      const Arrays before = slice(now, 1, now.size());
      Arrays after = run(loop.body, now[0], before, of_body);
      for (std::size_t i = 0; i < before.size(); ++i)
        after[i] = choose(now[0], after[i], before[i]);
      const Array holds = run(loop.cond, now[0], slice(after, 0, before.size()), of_cond)[0];
      if (loop.num_pushes() > 0) {  // who takes this step
        Array& flags = after[before.size()];
        flags = choose(now[0], flags, lax::zeros_like(flags.aval()));
      }
      after.insert(after.begin(), lax::bitwise_and(now[0], holds));
      return after;
    };
    const Arrays last = pushing_while(any, step, carry, {loop.max_steps}, "while_loop");
    return in_front(slice(last, 1, last.size()));
  }

  std::vector<Value> process_scan(const ScanParams& scan, std::span<const Value> inputs) {
    const std::span<const Value> of_xs = inputs.subspan(scan.num_carry, scan.num_xs);
    Arrays xs;
    for (const Value& value : of_xs) {
      const bool moves = value.dim && value.array.aval().stack == 0;
      xs.push_back(moves ? numpy::moveaxis(value.array, {*value.dim}, {1}) : value.array);
    }
    const Function step = [&](std::span<const Array> now) {
      std::vector<Value> arguments;
      for (std::size_t i = 0; i < now.size(); ++i) {
        const bool batched = i < scan.num_carry || of_xs[i - scan.num_carry].dim;
        arguments.push_back({now[i], batched ? std::optional<int>(0) : std::nullopt});
      }
      const auto consts = inputs.subspan(scan.num_carry + scan.num_xs);
      arguments.insert(arguments.end(), consts.begin(), consts.end());
      if (!scan.flagged) return to_front(interpret(*this, scan.body, arguments));
      const Array mine = batch_to_front(arguments[scan.num_carry], size);
      const Arrays before = slice(now, 0, scan.num_carry);
      std::vector<int> inner;  // lanes that were decomposed before
      for (int i = 1; i < mine.ndim(); ++i) inner.push_back(i);
      const Array any = inner.empty() ? mine : lax::reduce_or(mine, inner);
      Arrays after = to_front(interpret(LiveInterpreter{size, any, true}, scan.body, arguments));
      for (std::size_t i = 0; i < after.size(); ++i)
        after[i] = choose(mine, after[i],
                          i < before.size() ? before[i] : lax::zeros_like(after[i].aval()));
      return after;
    };
    const flat::Scanned done = scan_like(scan, step, to_front(inputs.first(scan.num_carry)), xs);
    std::vector<Value> results = in_front(done.carry);
    for (const Array& y : done.ys) results.push_back({y, y.aval().stack > 0 ? 0 : 1});
    return results;
  }

  // What raises or has an effect does so for live examples only. Where all examples share the
  // operands, it happens once if any is live.
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

  // One example after the other, those that are live.
  std::vector<Value> process_effect(const Equation& equation, std::span<const Value> inputs) {
    const Arrays arrays = to_front(inputs);
    std::vector<Aval> avals;
    for (const Value& input : inputs) avals.push_back(example_aval(input));
    const std::vector<Aval> outputs = infer(*equation.primitive, avals, equation.params);
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

// A body over arrays with a first axis where batched says so.
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

// The body over all examples: kernels part those of the outermost lane only.
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

// What several lanes are as one, or nothing where copies for those that share an operand would
// take too much memory.
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
  if (lanes.axes.rank() > 0) {  // the innermost lane was several
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

// Several lanes of which some examples take part, as lanes of a branch that is the body.
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
  const auto program =
      memoised<Jaxpr>(params.get<Jaxpr>("body"), "lanes " + params.without("body").to_string(),
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

std::vector<Batched> batch_lanes(Dim size, std::span<const Batched> inputs, const Params& params) {
  return batch_laned(lanes_p, LanesParams(params), size, inputs);
}

const auto decompose_rules = rules<Decompose>().on(lanes_p, decompose_lanes);
const auto linearize_rules = rules<Linearize>().on(lanes_p, linearize_lanes);
const auto transpose_rules = rules<Transpose>().on(lanes_p, transpose_lanes);
const auto batch_rules = rules<Batch>().on(lanes_p, batch_lanes);

}  // namespace

std::vector<Batched> bind_lanes(const Primitive& primitive, Dim size,
                                std::span<const Batched> inputs, const Params& params,
                                const Array& live) {
  LanesParams lanes;
  std::vector<Aval> avals;
  for (const Batched& input : inputs) avals.push_back(example_aval(input));
  lanes.body = make_closed_jaxpr(
      [&](std::span<const Array> arrays) { return Arrays(bind(primitive, arrays, params)); },
      avals);
  // The batch becomes its only lane.
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
