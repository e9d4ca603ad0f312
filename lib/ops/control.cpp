// cond, scan, while and lanes: what they hold, and the types of their results. See ops_control.h.
// SPDX-License-Identifier: Apache-2.0
#include "ops/lanes.h"

#include <plait/base/stack.h>
#include <plait/families.h>
#include <plait/ops.h>
#include <plait/ops_control.h>

namespace plait {
namespace {

const char* const runs_elsewhere =
    "it holds jaxprs, and runs by the kernels of lib/run/control.cpp";

std::string text_of(std::span<const Aval> avals) {
  std::string text;
  for (const Aval& aval : avals) text += (text.empty() ? "" : ", ") + aval.to_string();
  return "(" + text + ")";
}

bool fits(const Aval& given, const Aval& wanted) {
  return given.shape == wanted.shape && given.dtype == wanted.dtype && given.stack == wanted.stack;
}

// The library makes these equations, and checks what users give it before: what does not fit here
// is our bug, or a wrong text that was parsed.
void require_inputs(const char* name, std::span<const Aval> given, std::span<const Aval> wanted,
                    const Jaxpr& body) {
  if (!std::equal(given.begin(), given.end(), wanted.begin(), wanted.end(), fits))
    throw InternalError(std::string(name) + ": operands " + text_of(given) + " where " +
                        text_of(wanted) + " are needed by\n" + print(body));
}

}  // namespace

Params open_bodies(const Params& params) {
  const ParamValue* sizes = params.find("sizes");
  if (!sizes) return params;
  const Shape& values = std::get<Shape>(*sizes);
  return map_bodies(params,
                    [&](const Jaxpr& body) {
                      std::vector<std::pair<Dim, Dim>> replacements;
                      if (values.size() != body->sizes.size())
                        throw InternalError(std::to_string(values.size()) +
                                            " values for the sizes of\n" + print(body));
                      bool trivial = true;
                      for (std::size_t i = 0; i < body->sizes.size(); ++i) {
                        replacements.emplace_back(body->sizes[i], values[i]);
                        trivial &= body->sizes[i] == values[i];
                      }
                      return trivial ? body : instantiate(body, replacements);
                    })
      .without("sizes");
}

Params close_bodies(const Params& params) {
  std::vector<Dim> sizes;
  for_each_body(params, [&](const Jaxpr& body) {
    collect_sizes(Shape(body->sizes.begin(), body->sizes.end()), sizes);
  });
  if (sizes.empty()) return params;
  return map_bodies(params, [&](const Jaxpr& body) { return with_sizes(body, sizes); })
      .with("sizes", Shape(sizes.begin(), sizes.end()));
}

// --- cond ----------------------------------------------------------------------------------------

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
        .operands_at_least(1)
        .refuse<Eval>(runs_elsewhere)
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
          auto other = [] {  // whose derivative is of another form
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

// --- scan ----------------------------------------------------------------------------------------

ScanParams::ScanParams(const Params& params)
    : body(open_bodies(params).get<Jaxpr>("body")),
      num_carry(std::size_t(params.integer("carry"))),
      num_xs(std::size_t(params.integer("xs"))),
      reverse(params.flag("reverse")) {
  if (params.has("length")) length = params.get<Dim>("length");
  if (params.has("flagged")) flagged = params.flag("flagged");
  if (num_carry + num_xs > std::size_t(body->num_binders) || num_carry > body->outputs.size())
    throw InternalError("scan: the parameters do not fit each other: " + params.to_string());
}

Params ScanParams::to_params() const {
  std::vector<Params::Entry> entries{{"body", body},
                                     {"carry", Dim(std::int64_t(num_carry))},
                                     {"xs", Dim(std::int64_t(num_xs))},
                                     {"reverse", reverse}};
  if (length) entries.emplace_back("length", *length);
  if (flagged) entries.emplace_back("flagged", true);
  return close_bodies(Params(std::move(entries)));
}

Aval ScanParams::stacked(const Aval& slice) const {
  Aval aval = slice;
  if (!length || slice.stack > 0) {
    aval.weak = false;
    ++aval.stack;
  } else {
    aval.shape.insert(0, *length);
  }
  return aval;
}

std::vector<Aval> slices_of(std::vector<Aval> avals) {
  for (Aval& aval : avals) {
    if (aval.stack > 0)
      --aval.stack;
    else
      aval.shape.erase(0);
  }
  return avals;
}

Array map_stacks(std::span<const Array> stacks,
                 const std::function<Array(std::span<const Array> elements)>& function) {
  std::vector<Aval> avals;
  for (const Array& stack : stacks) avals.push_back(stack.aval());
  const Traced traced =
      make_jaxpr([&](std::span<const Array> elements) { return Arrays{function(elements)}; },
                 slices_of(avals), "map_stacks");
  ScanParams scan;
  scan.body = traced.jaxpr;
  scan.num_xs = stacks.size();
  Arrays operands(stacks.begin(), stacks.end());
  operands.insert(operands.end(), traced.captured.begin(), traced.captured.end());
  return bind(scan_p, operands, scan.to_params());
}

Array sum_over(const Array& array, std::span<const int> axes) {
  if (array.aval().stack == 0) return lax::reduce_sum(array, axes);
  return map_stacks(std::span(&array, 1),
                    [&](std::span<const Array> element) { return sum_over(element[0], axes); });
}

constinit const Primitive scan_p{"scan"};
static const auto scan_def =
    define(scan_p, "Applies a body to each slice of arrays along their first axis, with a carry.")
        .refuse<Eval>(runs_elsewhere)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const ScanParams scan(params);
          std::vector<Aval> wanted(scan.body->input_avals().begin(),
                                   scan.body->input_avals().end());
          for (std::size_t i = 0; i < scan.num_xs; ++i)
            wanted[scan.num_carry + i] = scan.stacked(wanted[scan.num_carry + i]);
          require_inputs("scan", inputs, wanted, scan.body);
          std::vector<Aval> outputs = scan.body->output_avals();
          const std::span<const Aval> carry = scan.body->input_avals().first(scan.num_carry);
          if (!scan.length && scan.num_xs == 0)
            throw InternalError("scan: neither a length nor stacks that know it");
          require_inputs("scan", std::span(outputs).first(scan.num_carry), carry, scan.body);
          for (std::size_t i = 0; i < outputs.size(); ++i)
            outputs[i] = i < scan.num_carry ? carry[i] : scan.stacked(outputs[i]);
          return outputs;
        })
        .rule<Samples>([] {
          std::vector<Sample> samples;
          for (const bool reverse : {false, true}) {  // c' = sin(c * w) + x, y = c * x
            Builder builder;
            const Var c = builder.add_binder({{3}, DType::float64});
            const Var x = builder.add_binder({{3}, DType::float64});
            const Var w = builder.add_binder({{3}, DType::float64});
            const Var sine = builder.add(sin_p, {builder.add(mul_p, {c, w}, {}, {})[0]}, {}, {})[0];
            const Var next = builder.add(add_p, {sine, x}, {}, {})[0];
            const Var y = builder.add(mul_p, {c, x}, {}, {})[0];
            ScanParams scan;
            scan.body = builder.close({next, y});
            scan.num_carry = scan.num_xs = 1;
            scan.length = 4;
            scan.reverse = reverse;
            samples.push_back(
                {{{{{3}, DType::float64}}, {{{4, 3}, DType::float64}}, {{{3}, DType::float64}}},
                 scan.to_params()});
          }
          return samples;
        });

// --- while ---------------------------------------------------------------------------------------

WhileParams::WhileParams(const Params& params)
    : num_carry(std::size_t(params.integer("carry"))),
      num_cond_consts(std::size_t(params.integer("cond_consts"))) {
  const Params open = open_bodies(params);
  cond = open.get<Jaxpr>("cond");
  body = open.get<Jaxpr>("body");
  if (params.has("max_steps")) max_steps = params.integer("max_steps");
  if (params.has("select")) select = params.flag("select");
  if (params.has("checkpoints")) checkpoints = params.integer("checkpoints");
  const bool is_predicate =
      cond->outputs.size() == 1 && cond->output_avals()[0] == Aval{{}, DType::bool_};
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

constinit const Primitive while_p{"while"};
static const auto while_def =
    define(while_p, "Applies a body to a carry while a condition of it holds.")
        .refuse<Eval>(runs_elsewhere)
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

// A stack whose elements are all zero: what a branch gives that is not taken, and zero tangents.
constinit const Primitive empty_stack_p{"empty_stack"};
static const auto empty_stack_def =
    define(empty_stack_p, "A stack that holds zeros, however many are read.")
        .rule<Abstract>([](std::span<const Aval>, const Params& params) {
          return std::vector<Aval>{{params.get<Shape>("shape"), params.get<DType>("dtype"), false,
                                    std::uint8_t(params.integer("depth"))}};
        })
        .rule<Eval>([](std::span<const View>, std::span<const View> outputs, const Params&) {
          outputs[0].as<Stack::Handle>()->reset();
        })
        .rule<Jvp>(zero_derivative())
        .rule<Batch>([](Dim, std::span<const Batched>, const Params& params) {
          return std::vector<Batched>{{Array(bind(empty_stack_p, {}, params)), std::nullopt}};
        })
        .rule<Mask>([](std::span<const Masked>, std::span<const Aval> outputs, const Params& params,
                       const SizeValues& sizes) {
          Shape shape;
          for (Dim dim : outputs[0].shape) shape.push_back(sizes.bound(dim));
          return Arrays(bind(empty_stack_p, {}, params.with("shape", shape)));
        })
        .rule<Samples>([] { return std::vector<Sample>{}; });

// --- lanes ---------------------------------------------------------------------------------------

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

bool is_cheap_together(const Equation& equation) {
  constexpr std::size_t most = 12;
  if (*equation.primitive == lanes_p) {
    const Jaxpr body = LanesParams(equation.params).body;
    return body->equations.size() == 1 && is_cheap_together(body->equations[0]);
  }
  if (!(*equation.primitive == cond_p) || equation.params.has("select")) return false;
  const CondParams cond(equation.params);
  return std::all_of(cond.branches.begin(), cond.branches.end(), [](const Jaxpr& branch) {
    return branch->equations.size() <= most &&
           std::all_of(branch->equations.begin(), branch->equations.end(),
                       [](const Equation& equation) {
                         return Pointwise::table().find(*equation.primitive) != nullptr;
                       });
  });
}

bool diverges(const Equation& equation, const std::vector<bool>& batched) {
  auto are_arrays = [](std::span<const Aval> avals) {
    return std::none_of(avals.begin(), avals.end(),
                        [](const Aval& aval) { return aval.stack > 0; });
  };
  if (equation.params.has("select") && equation.params.flag("select")) return false;
  if (*equation.primitive == cond_p) return batched[0];
  if (*equation.primitive == while_p) {
    const WhileParams loop(equation.params);
    return are_arrays(loop.body->input_avals().first(loop.num_carry));
  }
  if (*equation.primitive != scan_p) return false;
  const ScanParams scan(equation.params);
  return !scan.length && batched[scan.num_carry] &&
         are_arrays(scan.body->input_avals().first(scan.num_carry));
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

constinit const Primitive lanes_p{"lanes"};
static const auto lanes_def =
    define(lanes_p, "Applies a body of one example to each, whichever way each one goes.")
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
        .rule<Samples>(
            [] {  // conds and a loop that differ between examples; their last operand does not
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

}  // namespace plait
