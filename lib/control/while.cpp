// while: the function that makes one, and its rules.
//
// Forward mode is a loop over primals and tangents. Reverse mode is a loop that pushes the
// residuals of each step onto stacks, and a linear scan over the stacks. Only the scan is
// transposed, never the loop. Under vmap, a loop whose condition is batched becomes `lanes`.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/argument_names.h>
#include <plait/base/stack.h>
#include <plait/control/primitives.h>
#include <plait/primitives/families.h>
#include <plait/primitives/mesh.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/bodies.h>
#include <plait/rules/collect.h>
#include <plait/rules/emit.h>
#include <plait/rules/interpret.h>
#include <plait/rules/prune.h>
#include <plait/rules/speculate.h>
#include <plait/rules/steps.h>
#include <plait/trace/varying.h>
#include <plait/transforms/bodies.h>

#include <algorithm>
#include <array>

#include "control/bodies.h"
#include "control/endless.h"

namespace plait {
namespace {

// The operands of a loop: (carry, consts of cond, consts of body).
template <class T>
struct ByRole {
  std::vector<T> carry, cond_consts, body_consts;
  ByRole(std::span<const T> all, const WhileParams& loop) {
    const auto begin = all.begin(), cond = begin + std::ptrdiff_t(loop.num_carry),
               body = cond + std::ptrdiff_t(loop.num_cond_consts);
    carry.assign(begin, cond);
    cond_consts.assign(cond, body);
    body_consts.assign(body, all.end());
  }
  ByRole() = default;
  std::vector<T> of_cond() const { return concatenate(carry, cond_consts); }
  std::vector<T> of_body() const { return concatenate(carry, body_consts); }
  std::vector<T> joined() const { return concatenate(of_cond(), body_consts); }
};

// The flags of the carry among those of the body's inputs.
Flags carry_of(const Flags& flags, const WhileParams& loop) {
  return {flags.begin(), flags.begin() + std::ptrdiff_t(loop.num_carry)};
}

// Forward mode: one loop over primals and tangents.
Differentiated jvp_while(const WhileParams& loop, const ByRole<Array>& values,
                         const ByRole<Tangent>& tangents, const JvpJaxpr& jvp) {
  const std::size_t n = loop.num_carry, num_outputs = loop.body->outputs.size();
  ByRole<Array> operands = values;
  operands.carry = concatenate(values.carry, nonzero_arrays(tangents.carry));
  operands.body_consts = concatenate(values.body_consts, nonzero_arrays(tangents.body_consts));
  WhileParams now = loop;
  now.num_carry = operands.carry.size();
  now.cond = make_closed_jaxpr(
      [&](std::span<const Array> in) {
        return eval_jaxpr(loop.cond,
                          concatenate(slice(in, 0, n), slice(in, now.num_carry, in.size())));
      },
      avals_of(operands.of_cond()), loop.cond->sizes);
  const std::size_t first_push_tangent = num_outputs + (now.num_carry - n);
  now.body = make_closed_jaxpr(
      [&](std::span<const Array> in) {
        const std::size_t first_tangent = now.num_carry + loop.num_body_consts();
        const Arrays outputs = eval_jaxpr(
            jvp.jaxpr,
            concatenate(
                concatenate(slice(in, 0, n), slice(in, now.num_carry, first_tangent)),
                concatenate(slice(in, n, now.num_carry), slice(in, first_tangent, in.size()))));
        return concatenate(
            concatenate(slice(outputs, 0, n), slice(outputs, num_outputs, first_push_tangent)),
            concatenate(slice(outputs, n, num_outputs),
                        slice(outputs, first_push_tangent, outputs.size())));
      },
      avals_of(operands.of_body()), loop.body->sizes);
  const Arrays outputs = bind(while_p, operands.joined(), now.to_params());
  const std::size_t first_pushed = now.num_carry + loop.num_pushes();
  Differentiated result{
      concatenate(slice(outputs, 0, n), slice(outputs, now.num_carry, first_pushed)), {}};
  result.tangents = spread(
      concatenate(slice(outputs, n, now.num_carry), slice(outputs, first_pushed, outputs.size())),
      jvp.nonzero_outputs, avals_of(result.outputs));
  return result;
}

// Reverse mode: a loop that pushes residuals, and a linear scan over them.
Differentiated linearize_in_two(const WhileParams& loop, const ByRole<Array>& values,
                                const ByRole<Tangent>& tangents, const LinearizedJaxpr& jaxprs,
                                Trace* linear) {
  const std::size_t n = loop.num_carry, num_outputs = loop.body->outputs.size();
  // Loop-invariant residuals need no stack.
  const Invariants shared = eval_invariants(jaxprs.known, n, num_outputs, values.body_consts);
  const bool has_flags = loop.num_pushes() > 0;
  WhileParams known = loop;
  known.body = make_closed_jaxpr(
      [&](std::span<const Array> in) {
        const Arrays outputs = eval_jaxpr(jaxprs.known, in);
        Arrays results = slice(outputs, 0, num_outputs);
        if (!has_flags) results.push_back(Array(true));
        for (std::size_t i = 0; i < shared.is_invariant.size(); ++i)
          if (!shared.is_invariant[i]) results.push_back(outputs[num_outputs + i]);
        return results;
      },
      loop.body->input_avals(), loop.body->sizes);
  const Arrays outputs = bind(while_p, values.joined(), known.to_params());
  Differentiated result{slice(outputs, 0, num_outputs), {}};

  const Arrays of_carry = nonzero_arrays(tangents.carry),
               of_consts = nonzero_arrays(tangents.body_consts);
  Arrays xs{outputs[n]};
  const Arrays consts = concatenate(of_consts, shared.values);
  xs.insert(xs.end(), outputs.begin() + std::ptrdiff_t(num_outputs + (has_flags ? 0 : 1)),
            outputs.end());
  const std::size_t c = of_carry.size(), x = xs.size(), k = of_consts.size();
  ScanParams scan;
  scan.flagged = true;
  scan.num_carry = c;
  scan.num_xs = x;
  scan.body = make_closed_jaxpr(
      [&](std::span<const Array> in) {
        Arrays inputs = concatenate(slice(in, 0, c), slice(in, c + x, c + x + k));
        std::size_t next_x = c + 1, next_const = c + x + k;
        for (bool is_shared : shared.is_invariant)
          inputs.push_back(in[is_shared ? next_const++ : next_x++]);
        return eval_jaxpr(jaxprs.linear, inputs);
      },
      concatenate(concatenate(avals_of(of_carry), slices_of(avals_of(xs))), avals_of(consts)),
      loop.body->sizes);
  TraceScope scope(linear);
  result.tangents =
      spread(bind(scan_p, concatenate(concatenate(of_carry, xs), consts), scan.to_params()),
             jaxprs.nonzero_outputs, avals_of(result.outputs));
  return result;
}

Differentiated linearize_while(std::span<const Array> primals, std::span<const Tangent> tangents,
                               const Params& params, Trace* linear) {
  const WhileParams loop(params);
  const bool is_forward = linear == Trace::current();
  const ByRole<Array> values(primals, loop);
  ByRole<Tangent> of(tangents, loop);
  Flags has = nonzero(of.of_body());
  const Flags instantiate = mark_tangents(loop.body, has, loop.num_carry, is_forward);
  {
    TraceScope scope(linear);
    for (std::size_t i = 0; i < loop.num_carry; ++i)
      if (has[i]) of.carry[i] = of.carry[i].instantiate();
  }
  if (is_forward) return jvp_while(loop, values, of, *jvp_jaxpr(loop.body, has, instantiate));
  if (loop.checkpoints) return linearize_segmented(loop, primals, of.carry, of.body_consts, linear);
  return linearize_in_two(loop, values, of, *linearize_jaxpr(loop.body, has, instantiate), linear);
}

std::vector<std::optional<int>> front_dims(const Flags& batched) {
  std::vector<std::optional<int>> dims;
  for (bool flag : batched) dims.push_back(flag ? std::optional<int>(0) : std::nullopt);
  return dims;
}

std::vector<Batched> batch_while_together(const LiveExamples& examples,
                                          std::span<const Batched> inputs, const Params& params);

std::vector<Batched> batch_while(Dim size, std::span<const Batched> inputs, const Params& params) {
  const WhileParams loop(params);
  Arrays front;
  std::vector<char> flags;
  for (const Batched& input : inputs) {
    flags.push_back(input.dim.has_value());
    front.push_back(input.dim ? batch_to_front(input, size) : input.array);
  }
  const ByRole<char> has{std::span<const char>(flags), loop};
  auto of = [](const std::vector<char>& chars) { return Flags(chars.begin(), chars.end()); };
  Flags body = of(has.of_body());
  auto next = [&] {
    Flags outputs;
    for (const auto& dim : batch_jaxpr(loop.body, size, front_dims(body))->out_dims)
      outputs.push_back(dim.has_value());
    return outputs;
  };
  while (widen(body, next(), loop.num_carry)) {
  }
  const Flags carry = carry_of(body, loop), consts = of(has.cond_consts);
  const Flags cond = concatenate(carry, consts);
  const auto predicate = batch_jaxpr(loop.cond, size, front_dims(cond));
  if (predicate->out_dims[0]) {
    if (const auto examples = communicating_examples(size, params))
      return batch_while_together(*examples, inputs, params);
    return bind_lanes(while_p, size, inputs, params);
  }
  WhileParams now = loop;
  now.cond = predicate->jaxpr;
  Flags force = next();
  std::copy(carry.begin(), carry.end(), force.begin());
  now.body = batch_jaxpr(loop.body, size, front_dims(body), force)->jaxpr;
  for (std::size_t i = 0; i < loop.num_carry; ++i)
    if (carry[i]) front[i] = batch_to_front(inputs[i], size);
  std::vector<Batched> results;
  for (Array& output : bind(while_p, front, now.to_params()))
    results.push_back(
        {std::move(output), force[results.size()] ? std::optional<int>(0) : std::nullopt});
  return results;
}

// A loop that runs until its last example ends. Examples that have ended keep their carry.
std::vector<Batched> batch_while_together(const LiveExamples& examples,
                                          std::span<const Batched> inputs, const Params& params) {
  const WhileParams loop(params);
  const std::span<const Batched> init = inputs.first(loop.num_carry),
                                 of_cond = inputs.subspan(loop.num_carry, loop.num_cond_consts),
                                 of_body = inputs.subspan(loop.num_carry + loop.num_cond_consts);
  auto run = [&](const Jaxpr& jaxpr, const Array& live, const Arrays& carry,
                 std::span<const Batched> consts) {
    std::vector<Batched> arguments = in_front(carry);
    arguments.insert(arguments.end(), consts.begin(), consts.end());
    return to_front(examples.run_marked(live, jaxpr, arguments), examples.size);
  };
  Arrays carry = to_front(init, examples.size);
  carry.insert(carry.begin(), live_and(examples, run(loop.cond, examples.live, carry, of_cond)[0]));
  const Function any = [](std::span<const Array> now) -> Arrays {
    return {lax::reduce_or(now[0], std::vector<int>{0})};
  };
  const Function step = [&](std::span<const Array> now) {
    const Arrays before = slice(now, 1, now.size());
    Arrays after = run(loop.body, now[0], before, of_body);
    for (std::size_t i = 0; i < before.size(); ++i)
      after[i] = choose_examples(now[0], after[i], before[i]);
    const Array holds = run(loop.cond, now[0], slice(after, 0, before.size()), of_cond)[0];
    if (loop.num_pushes() > 0) {  // marks the examples that take this step
      Array& flags = after[before.size()];
      flags = choose_examples(now[0], flags, lax::zeros_like(flags.aval()));
    }
    after.insert(after.begin(), lax::bitwise_and(now[0], holds));
    return after;
  };
  const Arrays last = pushing_while(any, step, carry, {loop.max_steps}, "while_loop");
  return in_front(slice(last, 1, last.size()));
}

void visit_while(std::span<const Array> inputs, const Params& params, std::span<const std::int64_t>,
                 const Steps::Visit& visit) {
  const WhileParams loop(params);
  const std::size_t n = loop.num_carry;
  Arrays carry = slice(inputs, 0, n);
  const Arrays of_cond = slice(inputs, n, n + loop.num_cond_consts),
               of_body = slice(inputs, n + loop.num_cond_consts, inputs.size());
  for (std::int64_t number = 0; !loop.max_steps || number < *loop.max_steps; ++number) {
    const std::string step = "step " + std::to_string(number);
    const Arrays holds =
        visit({loop.cond, concatenate(carry, of_cond), "while", "condition of " + step});
    if (holds[0].item<std::int64_t>() == 0) return;
    carry = slice(visit({loop.body, concatenate(carry, of_body), "while", step}), 0, n);
  }
}

Arrays mask_while(std::span<const Masked> inputs, std::span<const Aval>, const Params& params,
                  const SizeValues& sizes) {
  const WhileParams loop(params);
  const SizeValues outside = from_outside(sizes);
  const ByRole<Masked> values(inputs, loop);
  auto masked = [&](const Jaxpr& jaxpr, const std::vector<Masked>& consts) {
    return [&, consts](std::span<const Array> carry) {
      std::vector<Masked> arguments;
      for (std::size_t i = 0; i < carry.size(); ++i)
        arguments.push_back({carry[i], jaxpr->avals[i]});
      Arrays outputs;
      for (const Masked& output : eval_masked(jaxpr, concatenate(arguments, consts), outside))
        outputs.push_back(output.padded);
      return outputs;
    };
  };
  Arrays init;
  for (const Masked& value : values.carry) init.push_back(value.padded);
  return pushing_while(masked(loop.cond, values.cond_consts), masked(loop.body, values.body_consts),
                       init, {loop.max_steps, loop.select, loop.checkpoints}, "while_loop");
}

PrunedEquation prune_while(const Params& params, Flags outputs) {
  WhileParams loop(params);
  const std::size_t n = loop.num_carry;
  const auto cond = prune_jaxpr(loop.cond, {true}, none_of(loop.cond));
  widen(outputs, cond->inputs, n);
  // Pushed values need the flags that mark the examples that take a step.
  if (count(outputs) > count(part(outputs, 0, n))) outputs[n] = true;
  const auto body = prune_loop(loop.body, outputs, n, none_of(loop.body));
  const Flags carry = part(outputs, 0, n);
  const Flags cond_consts = part(cond->inputs, n, cond->inputs.size()),
              body_consts = part(body->inputs, n, body->inputs.size());
  loop.cond = prune_jaxpr(loop.cond, {true}, concatenate(carry, cond_consts))->jaxpr;
  loop.body = body->jaxpr;
  loop.num_carry = count(carry);
  loop.num_cond_consts = count(cond_consts);
  return {loop.to_params(), concatenate(concatenate(carry, cond_consts), body_consts),
          std::move(outputs)};
}

}  // namespace

// --- The block ----------------------------------------------------------------------------------

WhileParams::WhileParams(const Params& params)
    : num_carry(std::size_t(params.integer("carry"))),
      num_cond_consts(std::size_t(params.integer("cond_consts"))) {
  const Params open = open_bodies(params);
  cond = open.get<Jaxpr>("cond");
  body = open.get<Jaxpr>("body");
  if (params.has("max_steps")) max_steps = params.integer("max_steps");
  if (params.has("select")) select = params.flag("select");
  if (params.has("checkpoints")) checkpoints = params.integer("checkpoints");
  Aval predicate{{}, DType::bool_};
  if (cond->outputs.size() == 1) predicate.varying = cond->output_avals()[0].varying;
  const bool is_predicate = cond->outputs.size() == 1 && cond->output_avals()[0] == predicate;
  if (!is_predicate || std::size_t(cond->num_binders) != num_carry + num_cond_consts ||
      num_carry > std::size_t(body->num_binders) || num_carry > body->outputs.size())
    throw InternalError("while: the parameters do not fit each other: " + params.to_string());
}

Params WhileParams::to_params() const {
  std::vector<Params::Entry> entries{{"cond", cond},
                                     {"body", body},
                                     {"carry", Dim(std::int64_t(num_carry))},
                                     {"cond_consts", Dim(std::int64_t(num_cond_consts))}};
  if (max_steps) entries.emplace_back("max_steps", Dim(*max_steps));
  if (select) entries.emplace_back("select", *select);
  if (checkpoints) entries.emplace_back("checkpoints", Dim(*checkpoints));
  return close_bodies(Params(std::move(entries)));
}

namespace {

loops::Tensors emit_while(loops::Writer& w, const Equation& equation,
                          std::span<const loops::Tensor> inputs) {
  const WhileParams loop(equation.params);
  if (loop.num_pushes() > 0) w.refuse("stacks");
  // Steps are counted in memory: carries are operands of the equation.
  std::optional<loops::Tensor> taken;
  if (loop.max_steps) {
    taken = w.make({{}, DType::int64});
    w.store(taken->place, w.integer(0));
  }
  const auto count_step = [&] {
    const loops::Value before = w.load(taken->place);
    w.check(
        before, 0, *loop.max_steps - 1, [](std::int64_t steps) { throw endless(steps); },
        equation.source);
    w.store(taken->place, w.compute(add_p, {}, {before, w.integer(1)}, equation.source));
  };
  const std::size_t n = loop.num_carry, first_of_body = n + loop.num_cond_consts;
  auto run = [&](const Jaxpr& program, std::span<const loops::Tensor> carry, std::size_t first,
                 std::size_t end, bool overwrites) {
    loops::Tensors operands(carry.begin(), carry.end());
    operands.insert(operands.end(), inputs.begin() + std::ptrdiff_t(first),
                    inputs.begin() + std::ptrdiff_t(end));
    Flags owned(operands.size(), false);
    std::fill_n(owned.begin(), n, overwrites);
    return w.lower(program, std::move(operands), owned);
  };
  return w.repeat_while(
      n,
      [&](std::span<const loops::Tensor> carry) {
        return w.elements_of(run(loop.cond, carry, n, first_of_body, false)[0])[0];
      },
      [&](loops::Value, std::span<const loops::Tensor> carry) {
        if (taken) count_step();
        return loops::Writer::Next{run(loop.body, carry, first_of_body, inputs.size(), true)};
      });
}

}  // namespace

constinit const Primitive while_p{"while"};
static const auto while_def =
    define(while_p, "Applies a body to a carry while a condition of it holds.")
        .family(holds_programs())
        .refuse<Eval>(runs_elsewhere)
        .rule<Prune>(prune_while)
        .rule<Linearize>(linearize_while)
        .rule<Batch>(batch_while)
        .rule<Mask>(mask_while)
        .rule<Steps>(visit_while)
        .rule<Diverge>({batch_while_together,
                        [](const Params& params, const Flags&) {
                          const WhileParams loop(params);
                          return !selects(params) &&
                                 are_arrays(loop.body->input_avals().first(loop.num_carry));
                        }})
        .rule<Emit>(emit_while)
        .rule<Bodies>([](const Params& params) {
          const WhileParams loop(params);
          const std::size_t n = loop.num_carry;
          const int first = int(n), first_of_body = first + int(loop.num_cond_consts);
          return std::vector<Body>{
              {loop.cond, Body::Runs::repeatedly, 1, false, operands_of_loop(n, first, loop.cond)},
              {loop.body, Body::Runs::repeatedly, 1, false,
               operands_of_loop(n, first_of_body, loop.body)}};
        })
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const WhileParams loop(params);
          const std::span<const Aval> cond = loop.cond->input_avals(),
                                      body = loop.body->input_avals();
          require_inputs("while", cond.first(loop.num_carry), body.first(loop.num_carry),
                         loop.body);
          require_inputs("while", inputs, concatenate(cond, body.subspan(loop.num_carry)),
                         loop.body);
          std::vector<Aval> outputs = loop.body->output_avals();
          require_inputs("while", std::span(outputs).first(loop.num_carry),
                         body.first(loop.num_carry), loop.body);
          for (std::size_t i = 0; i < outputs.size(); ++i) {
            if (i < loop.num_carry) {
              outputs[i] = body[i];
            } else {
              ++outputs[i].stack;
              outputs[i].weak = false;
              outputs[i].varying |= loop.cond->output_avals()[0].varying;  // in length, too
            }
          }
          return outputs;
        })
        .rule<Samples>([] {  // x = sin(x * w) for i steps: i counts down
          const Aval index{{}, DType::int32}, value{{3}, DType::float64};
          Builder cond, body;
          const Var left = cond.add_binder(index);
          cond.add_binder(value);
          const Literal zero{DType::int32, false, 0, 0, 0}, one{DType::int32, false, 1, 0, 0};
          WhileParams loop;
          loop.cond = cond.close(
              {cond.add(cmp_p, {zero, left}, {{"direction", std::string("lt")}}, {})[0]});
          const Var i = body.add_binder(index), x = body.add_binder(value),
                    w = body.add_binder(value);
          const Var sine = body.add(sin_p, {body.add(mul_p, {x, w}, {}, {})[0]}, {}, {})[0];
          loop.body = body.close({body.add(sub_p, {i, one}, {}, {})[0], sine});
          loop.num_carry = 2;
          const Sample::Input steps{index, Sample::Input::Values::indices, 5};
          const Params plain = loop.to_params();
          loop.checkpoints = 2;
          return std::vector<Sample>{{{steps, {value}, {value}}, plain},
                                     {{steps, {value}, {value}}, loop.to_params()}};
        });

namespace {

Traced trace_condition(const Function& cond, const Arrays& carry, std::string_view name) {
  auto checked = [&](std::span<const Array> inputs) {
    Arrays outputs = cond(inputs);
    if (outputs.size() != 1)
      throw TreeError(std::string(name) + ": the condition returns " +
                          std::to_string(outputs.size()) + " arrays",
                      "return one bool scalar");
    if (outputs[0].ndim() != 0 || outputs[0].dtype() != DType::bool_)
      throw DtypeError(std::string(name) + ": the condition returns " +
                           outputs[0].aval().to_string() + ", and should be a bool scalar",
                       "return a comparison, reduced with all or any");
    return outputs;
  };
  return make_jaxpr(checked, avals_of(carry), name);
}

}  // namespace

Arrays pushing_while(const Function& cond, const Function& body, std::span<const Array> init,
                     const flat::WhileOptions& options, std::string_view name) {
  WhileParams loop;
  loop.num_carry = init.size();
  loop.max_steps = options.max_steps;
  loop.select = options.select;
  loop.checkpoints = options.checkpoints;
  Arrays carry(init.begin(), init.end());
  Traced traced_body = trace_carried(body, carry, {}, name);
  Traced traced_cond = trace_condition(cond, carry, name);
  // Where places take different numbers of steps, all that comes out differs.
  const auto differing = [&] { return traced_cond.jaxpr->output_avals()[0].varying; };
  while (!std::ranges::all_of(
      carry, [&](const Array& each) { return each.aval().varying.includes(differing()); })) {
    for (Array& each : carry) each = varying_along(each, differing());
    traced_body = trace_carried(body, carry, {}, name);
    traced_cond = trace_condition(cond, carry, name);
  }
  require_same_ways(differing(), std::array{traced_cond.jaxpr, traced_body.jaxpr}, name,
                    "what the condition returns");
  const auto captured = [&](const Traced& traced, Jaxpr& jaxpr) {
    Arrays operands = concatenate(carry, traced.captured);
    jaxpr = plait::differing(traced.jaxpr, operands, differing());
    return slice(operands, carry.size(), operands.size());
  };
  const Arrays of_body = captured(traced_body, loop.body),
               of_cond = captured(traced_cond, loop.cond);
  loop.num_cond_consts = of_cond.size();
  return bind(while_p, concatenate(concatenate(carry, of_cond), of_body), loop.to_params());
}

Arrays flat::while_loop(const Function& cond, const Function& body, std::span<const Array> init,
                        const WhileOptions& options, std::string_view name) {
  if (options.max_steps && *options.max_steps < 0)
    throw ValueError(std::string(name) + ": max_steps is " + std::to_string(*options.max_steps),
                     "give a number of steps that is 0 or more");
  require_checkpoints(options.checkpoints, name);
  const Function checked = [&](std::span<const Array> carry) {
    Arrays next = body(carry);
    if (next.size() != init.size())
      throw TreeError(std::string(name) + ": the body returns " + std::to_string(next.size()) +
                          " arrays for a carry of " + std::to_string(init.size()),
                      "return a carry of the structure that came in");
    return next;
  };
  return pushing_while(cond, checked, init, options, name);
}

}  // namespace plait
