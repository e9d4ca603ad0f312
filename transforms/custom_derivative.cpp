// custom_derivative: the primitive of a function with its own derivative rule. Every transform but
// differentiation rewrites function and rule alike, so that grad(vmap(custom_vjp f)) has the rule.
// Also traces custom_jvp and custom_vjp to it.
//
//   body           the function
//   jvp            primals, tangents -> outputs, tangents
//   fwd, bwd       primals -> outputs, residuals; residuals, cotangents -> cotangents of primals
//   rules          in place of these: what is traced to them where somebody differentiates
//   name           shown in text, profiles and errors
//   num_captured   how many of the last operands are captured; absent: none
//   sizes          values of named sizes, which all the programs list, in order
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>
#include <plait/rules/interpret.h>
#include <plait/trace/suspended.h>
#include <plait/transforms/applied.h>
#include <plait/transforms/custom_rules.h>

#include <mutex>
#include <numeric>

namespace plait {

// Rules that are traced where somebody differentiates, for the operands that vary there.
class PendingRules : public std::enable_shared_from_this<PendingRules> {
 public:
  struct Traced {
    CustomDerivative custom;  // with programs
    Arrays constants;         // what the rules captured besides: its last operands
  };
  virtual ~PendingRules() = default;
  // Whether the exception that is being handled says that a rule cannot be traced.
  virtual bool is_failure() const = 0;
  std::shared_ptr<const Traced> traced(const CustomDerivative& equation,
                                       const Flags& varies) const {
    {
      const std::lock_guard lock(mutex_);
      for (const Kept& kept : kept_)
        if (kept.varies == varies && kept.body == equation.body) return kept.traced;
    }
    auto made = std::make_shared<const Traced>(trace(equation, varies));
    const std::lock_guard lock(mutex_);
    kept_.push_back({equation.body, varies, made});
    return made;
  }

 private:
  struct Kept {
    Jaxpr body;
    Flags varies;
    std::shared_ptr<const Traced> traced;
  };
  virtual Traced trace(const CustomDerivative& equation, const Flags& varies) const = 0;
  mutable std::mutex mutex_;
  mutable std::vector<Kept> kept_;
};

CustomDerivative::CustomDerivative(const Params& params)
    : body(open_body(params)), name(params.text("name")) {
  if (params.has("num_captured")) num_captured = params.integer("num_captured");
  if (const ParamValue* pending = params.find("rules")) {
    rules = std::get<Callable>(*pending).as<const PendingRules>().shared_from_this();
  } else if (params.has("jvp")) {
    jvp = open_body(params, "jvp");
  } else if (params.has("bwd")) {
    fwd = open_body(params, "fwd");
    bwd = open_body(params, "bwd");
  }
}

Params CustomDerivative::to_params() const {
  // The programs list the same sizes, so that one list of values serves them all.
  std::vector<Dim> sizes;
  for (const Jaxpr* program : {&body, &bwd, &fwd, &jvp})
    if (*program) collect_sizes(Shape((*program)->sizes.begin(), (*program)->sizes.end()), sizes);
  Params params{{"body", with_sizes(body, sizes)}, {"name", name}};
  if (jvp) params = params.with("jvp", with_sizes(jvp, sizes));
  if (bwd) params = params.with("fwd", with_sizes(fwd, sizes)).with("bwd", with_sizes(bwd, sizes));
  if (rules)
    params = params.with("rules", Callable(name, std::const_pointer_cast<PendingRules>(rules)));
  if (num_captured > 0) params = params.with("num_captured", Dim(num_captured));
  return sizes.empty() ? params : params.with("sizes", Shape(sizes.begin(), sizes.end()));
}

namespace {

// --- Derivatives ---------------------------------------------------------------------------------

void refuse_captured(const CustomDerivative& custom, std::span<const Array> primals,
                     std::span<const Tangent> tangents) {
  for (std::size_t i = tangents.size() - std::size_t(custom.num_captured); i < tangents.size(); ++i)
    if (!tangents[i].is_zero()) throw_captured(primals[i], custom.name);
}

// The user's rule computes outputs and tangents together. It is evaluated in the linear trace; the
// part of it that does not depend on tangents runs in the enclosing trace.
Differentiated linearize_by_jvp(const CustomDerivative& custom, std::span<const Array> primals,
                                std::span<const Tangent> tangents, Trace* linear) {
  Arrays arguments(primals.begin(), primals.end());
  for (const Tangent& tangent : tangents) arguments.push_back(tangent.instantiate());
  TraceScope scope(linear);
  const Arrays results = eval_jaxpr(custom.jvp, arguments);
  const std::size_t num_outputs = results.size() / 2;
  Differentiated result{slice(results, 0, num_outputs), {}};
  result.tangents.assign(results.begin() + std::ptrdiff_t(num_outputs), results.end());
  return result;
}

// fwd runs now. The linear part is the map of which bwd is the transpose.
Differentiated linearize_by_bwd(const CustomDerivative& custom, std::span<const Array> primals,
                                std::span<const Tangent> tangents, Trace* linear) {
  const std::size_t num_outputs = custom.body->outputs.size();
  const Arrays results = flat::call(custom.fwd, primals, custom.name);
  Differentiated result{slice(results, 0, num_outputs), {}};
  Arrays arguments = slice(results, num_outputs, results.size());
  const std::size_t num_residuals = arguments.size();
  for (const Tangent& tangent : tangents)
    if (is_differentiable(tangent.aval())) arguments.push_back(tangent.instantiate());
  TraceScope scope(linear);
  const Arrays pushed = bind_custom_linear(custom.bwd, num_residuals, custom.name, arguments);
  std::size_t next = 0;
  for (const Array& output : result.outputs)
    result.tangents.push_back(is_differentiable(output.aval()) ? Tangent(pushed[next++])
                                                               : Tangent(output.aval()));
  return result;
}

Differentiated linearize_by_rule(const CustomDerivative& custom, std::span<const Array> primals,
                                 std::span<const Tangent> tangents, Trace* linear) {
  if (custom.jvp) return linearize_by_jvp(custom, primals, tangents, linear);
  if (custom.bwd) return linearize_by_bwd(custom, primals, tangents, linear);
  throw TracerError("the derivative rules of `" + custom.name +
                        "` depend on which inputs vary, and were not saved with the program",
                    "differentiate before saving, or give rules without symbolic_zeros");
}

Differentiated linearize_custom(std::span<const Array> primals, std::span<const Tangent> tangents,
                                const Params& params, Trace* linear) {
  const CustomDerivative custom(params);
  refuse_captured(custom, primals, tangents);
  if (!custom.rules) return linearize_by_rule(custom, primals, tangents, linear);
  const auto traced = custom.rules->traced(custom, nonzero(tangents));
  Tangents all(tangents.begin(), tangents.end());
  Arrays operands(primals.begin(), primals.end());
  for (const Array& constant : traced->constants) {
    operands.push_back(constant);
    all.emplace_back(constant.aval());
  }
  return linearize_by_rule(traced->custom, operands, all, linear);
}

// The transpose of the function, which has no rule.
Arrays apply_transposed(const Params& of, const Jaxpr& part, std::string_view,
                        std::span<const Array> operands) {
  return flat::call(part, operands, of.text("name"));
}

// --- Batches -------------------------------------------------------------------------------------

using Dims = std::vector<std::optional<int>>;

Jaxpr batched_jvp(const Jaxpr& jvp, Dim size, const Dims& dims) {
  return batch_jaxpr(jvp, size, concatenate(dims, dims), true)->jaxpr;
}

// Residuals and cotangents are batched. The cotangent of an unbatched operand is summed over the
// batch.
Jaxpr batched_bwd(const CustomDerivative& custom, Dim size, const Dims& dims) {
  const Dims all(std::size_t(custom.bwd->num_binders), 0);
  const Jaxpr batched = batch_jaxpr(custom.bwd, size, all, true)->jaxpr;
  return make_closed_jaxpr(
      [&](std::span<const Array> arguments) {
        Arrays results = eval_jaxpr(batched, arguments);
        std::size_t next = 0;
        for (std::size_t i = 0; i < dims.size(); ++i) {
          if (!is_differentiable(custom.body->avals[i])) continue;
          if (!dims[i]) results[next] = lax::reduce_sum(results[next], std::vector<int>{0});
          ++next;
        }
        return results;
      },
      batched->input_avals(), batched->sizes);
}

// The same on batches, whose axes are in front.
CustomDerivative batched_custom(const CustomDerivative& custom, Dim size, const Dims& dims);

// Rules that are traced, and then batched.
class BatchedRules final : public PendingRules {
 public:
  BatchedRules(CustomDerivative one, Dim size, Dims dims)
      : one_(std::move(one)), size_(size), dims_(std::move(dims)) {}

 private:
  Traced trace(const CustomDerivative& equation, const Flags& varies) const override {
    const auto one = one_.rules->traced(one_, varies);
    Dims dims = dims_;
    dims.resize(dims.size() + one->constants.size());
    Traced result{batched_custom(one->custom, size_, dims), one->constants};
    for (int i = 0; i < equation.body->num_binders; ++i)
      if (!(equation.body->avals[i] == result.custom.body->avals[i]))
        throw TracerError("the rules of `" + one_.name +
                              "` are traced where somebody "
                              "differentiates, and a batch of them no longer has its sizes",
                          "give rules without symbolic_zeros, or arrays without named sizes");
    return result;
  }
  bool is_failure() const override { return one_.rules->is_failure(); }
  const CustomDerivative one_;
  const Dim size_;
  const Dims dims_;
};

CustomDerivative batched_custom(const CustomDerivative& custom, Dim size, const Dims& dims) {
  CustomDerivative now = custom;
  now.body = batch_jaxpr(custom.body, size, dims, true)->jaxpr;
  if (custom.jvp) now.jvp = batched_jvp(custom.jvp, size, dims);
  if (custom.fwd) now.fwd = batch_jaxpr(custom.fwd, size, dims, true)->jaxpr;
  if (custom.bwd) now.bwd = batched_bwd(custom, size, dims);
  if (custom.rules) now.rules = std::make_shared<BatchedRules>(custom, size, dims);
  return now;
}

// Function and rules must agree on every batch axis, so all are first.
std::vector<Batched> batch_custom(Dim size, std::span<const Batched> inputs, const Params& params) {
  const CustomDerivative custom(params);
  const BatchedInFront front(size, inputs);
  const CustomDerivative now = batched_custom(custom, size, front.dims);
  const auto body = batch_jaxpr(custom.body, size, front.dims, true);
  std::vector<Batched> results;
  const Arrays outputs = bind(custom_derivative_p, front.arrays, now.to_params());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    results.push_back({outputs[i], body->out_dims[i]});
  return results;
}

// --- Samples -------------------------------------------------------------------------------------

// The rules are the function's own derivatives.
std::vector<Sample> custom_samples() {
  const Flags all{true, true};
  CustomDerivative forward;
  forward.name = "f";
  forward.body = sample_body();
  forward.jvp = jvp_jaxpr(forward.body, all)->jaxpr;
  CustomDerivative backward;
  backward.name = "f";
  backward.body = sample_body();
  const auto linearized = linearize_jaxpr(backward.body, all);
  Flags linear(std::size_t(linearized->linear->num_binders), false);
  std::fill_n(linear.begin(), all.size(), true);
  backward.fwd = linearized->known;
  backward.bwd = transpose_jaxpr(linearized->linear, linear, all)->jaxpr;
  std::vector<Sample> samples;
  for (const CustomDerivative& custom : {forward, backward})
    samples.push_back(sample_of_body(custom.to_params()));
  return samples;
}

}  // namespace

constinit const Primitive custom_derivative_p{"custom_derivative"};
static const auto custom_derivative_def =
    define(custom_derivative_p, "Applies a function that has a rule of its own for derivatives.")
        .family(applies_body({Inline::When::differentiated}))
        .refuse<Prune>("function and rule have the same outputs")
        .rule<Linearize>(linearize_custom)
        .rule<Transpose>(transpose_body(apply_transposed))
        .rule<Batch>(batch_custom)
        .rule<Samples>(custom_samples);

// --- Tracing functions and rules -----------------------------------------------------------------

namespace {

// Adds the arrays that a traced function captured, each once.
void add_captured(const Traced& traced, Arrays& captured) {
  for (const Array& array : traced.captured)
    if (std::none_of(captured.begin(), captured.end(),
                     [&](const Array& other) { return other.is_same(array); }))
      captured.push_back(array);
}

// A traced rule as a jaxpr that takes captured arrays from the common list. Its inputs are the
// rule's operands, with that list inserted at `position`; it ignores inputs for `repeats` at the
// end.
Jaxpr with_captured(const Traced& traced, const std::vector<Aval>& operands, std::size_t position,
                    const Arrays& captured, const std::vector<std::size_t>& repeats) {
  std::vector<Aval> avals(operands.begin(), operands.begin() + position);
  for (const Array& array : captured) avals.push_back(array.aval());
  avals.insert(avals.end(), operands.begin() + position, operands.end());
  for (std::size_t repeat : repeats) avals.push_back(captured[repeat].aval());
  return make_closed_jaxpr(
      [&](std::span<const Array> inputs) {
        Arrays arguments(inputs.begin(), inputs.begin() + position);
        arguments.insert(arguments.end(), inputs.begin() + position + captured.size(),
                         inputs.begin() + operands.size() + captured.size());
        for (const Array& array : traced.captured)
          for (std::size_t i = 0; i < captured.size(); ++i)
            if (captured[i].is_same(array)) arguments.push_back(inputs[position + i]);
        return eval_jaxpr(traced.jaxpr, arguments);
      },
      avals);
}

// The depth of rules that are traced one inside another on this thread. A rule that applies its own
// function would be traced without end: from some depth on, rules wait for somebody who
// differentiates. One that differentiates its own function does not end then either.
class StagedRule {
 public:
  explicit StagedRule(const std::string& name) {
    constexpr int deepest = 50;
    is_endless_ = depth_ == deepest;
    if (is_endless_)
      throw TracerError(
          "the rule of `" + name + "` applies `" + name + "` again, and is traced without end",
          "use in the rule a function without a rule of its own");
    ++depth_;
  }
  ~StagedRule() { --depth_; }
  static bool is_endless() { return is_endless_; }
  static bool waits() { return depth_ >= 4; }
  StagedRule(const StagedRule&) = delete;

 private:
  inline static thread_local int depth_ = 0;
  inline static thread_local bool is_endless_ = false;
};

// What function and rules of an equation are traced for, and what they captured.
struct Staged {
  const std::string& name;
  std::vector<Aval> avals, outputs;  // of the function
  Arrays captured;

  // The program with the captured arrays as operands after its own.
  Jaxpr entry(const Traced& traced) const {
    return with_captured(traced, avals, avals.size(), captured, {});
  }
};

Traced traced_jvp(const CustomRules& rules, const Flags& varies, const Staged& staged) {
  Traced traced =
      make_jaxpr([&](std::span<const Array> arguments) { return rules.jvp(arguments, varies); },
                 concatenate(staged.avals, staged.avals), "custom_jvp");
  const std::vector<Aval>& outputs = staged.outputs;
  const std::vector<Aval> results = traced.jaxpr->output_avals();
  if (results.size() != 2 * outputs.size())
    throw TreeError("the jvp rule of `" + staged.name + "` returned " +
                        std::to_string(results.size()) + " arrays, and the function has " +
                        std::to_string(outputs.size()) + " outputs",
                    "return a pair: the outputs, and their tangents in the same structure");
  for (std::size_t i = 0; i < results.size(); ++i)
    check_rule_output("the jvp rule", staged.name, i, results[i], outputs[i % outputs.size()]);
  return traced;
}

// The entry takes primals, captured arrays, tangents, and tangents of captured ones, which are
// zero.
Jaxpr jvp_entry(const Staged& staged, const Traced& rule) {
  std::vector<std::size_t> repeats(staged.captured.size());
  std::iota(repeats.begin(), repeats.end(), std::size_t(0));
  return with_captured(rule, concatenate(staged.avals, staged.avals), staged.avals.size(),
                       staged.captured, repeats);
}

// fwd, which returns outputs and residuals in one list.
Traced traced_fwd(const CustomRules& rules, const Flags& varies, const Staged& staged) {
  const std::vector<Aval>& outputs = staged.outputs;
  Traced traced = make_jaxpr(
      [&](std::span<const Array> arguments) {
        const flat::Forward result = rules.fwd(arguments, varies);
        if (result.outputs.size() != outputs.size())
          throw TreeError("the fwd rule of `" + staged.name + "` returned " +
                              std::to_string(result.outputs.size()) +
                              " outputs, and the function has " + std::to_string(outputs.size()),
                          "return a pair: the outputs, and residuals for bwd");
        return concatenate(result.outputs, result.residuals);
      },
      staged.avals, "custom_vjp");
  const std::vector<Aval> results = traced.jaxpr->output_avals();
  for (std::size_t i = 0; i < outputs.size(); ++i)
    check_rule_output("the fwd rule", staged.name, i, results[i], outputs[i]);
  return traced;
}

// bwd, which takes residuals, then the cotangents of outputs that have one.
Traced traced_bwd(const CustomRules& rules, const Staged& staged, std::vector<Aval> residuals) {
  for (const Aval& aval : staged.outputs)
    if (is_differentiable(aval)) residuals.push_back(tangent_aval(aval));
  const OnlineBackward rule{rules.bwd, staged.avals, staged.outputs, staged.name};
  return make_jaxpr([&](std::span<const Array> arguments) { return rule.pull(arguments); },
                    residuals, "custom_vjp");
}

// Captured arrays are residuals, too.
Jaxpr fwd_entry(const Staged& staged, const Traced& forward) {
  const Jaxpr plain = staged.entry(forward);
  return make_closed_jaxpr(
      [&](std::span<const Array> arguments) {
        return concatenate(eval_jaxpr(plain, arguments), arguments.subspan(staged.avals.size()));
      },
      plain->input_avals());
}

// bwd takes the captured arrays after the residuals, and returns zero cotangents for them.
Jaxpr bwd_entry(const Staged& staged, const Traced& backward, std::size_t num_residuals) {
  const std::span<const Aval> avals = backward.jaxpr->input_avals();
  const std::vector<Aval> own(avals.begin(),
                              avals.end() - std::ptrdiff_t(backward.captured.size()));
  const Jaxpr plain = with_captured(backward, own, num_residuals, staged.captured, {});
  return make_closed_jaxpr(
      [&](std::span<const Array> arguments) {
        Arrays all = eval_jaxpr(plain, arguments);
        for (const Array& array : staged.captured)
          if (is_differentiable(array.aval())) all.push_back(lax::zeros_like(array.aval()));
        return all;
      },
      plain->input_avals());
}

// Traces the rules to programs of the equation. Adds what they capture.
void trace_rules(const CustomRules& rules, const Flags& varies, Staged& staged,
                 CustomDerivative& custom) {
  const StagedRule deeper(staged.name);
  if (rules.jvp) {
    const Traced rule = traced_jvp(rules, varies, staged);
    add_captured(rule, staged.captured);
    custom.jvp = jvp_entry(staged, rule);
    return;
  }
  const Traced forward = traced_fwd(rules, varies, staged);
  const std::vector<Aval> results = forward.jaxpr->output_avals();
  const std::vector<Aval> residuals(results.begin() + std::ptrdiff_t(staged.outputs.size()),
                                    results.end());
  const Traced backward = traced_bwd(rules, staged, residuals);
  add_captured(forward, staged.captured);
  add_captured(backward, staged.captured);
  custom.fwd = fwd_entry(staged, forward);
  custom.bwd = bwd_entry(staged, backward, residuals.size());
}

// The user's rules, and what was around the call that is differentiated later.
class UserRules final : public PendingRules {
 public:
  UserRules(CustomRules rules, Arrays captured)
      : rules_(std::move(rules)), captured_(std::move(captured)) {}

 private:
  Traced trace(const CustomDerivative& equation, const Flags& varies) const override {
    const TransformScope scope(rules_.transform(), equation.name);
    const DefaultDTypesScope same_dtypes(dtypes_);
    const std::span<const Aval> operands = equation.body->input_avals();
    const std::span<const Aval> own_operands = operands.first(operands.size() - captured_.size());
    Staged staged{equation.name,
                  {own_operands.begin(), own_operands.end()},
                  equation.body->output_avals(),
                  captured_};
    const Flags own(varies.begin(), varies.begin() + std::ptrdiff_t(staged.avals.size()));
    Traced result;
    trace_rules(rules_, own, staged, result.custom);
    result.constants = slice(staged.captured, captured_.size(), staged.captured.size());
    for (const Array& constant : result.constants)
      if (!constant.is_concrete())
        throw TracerError("the rules of `" + equation.name +
                              "` are traced where somebody differentiates, and capture an array "
                              "of type " +
                              constant.aval().to_string() +
                              " that a transform traces and the function does not use",
                          "pass the array to `" + equation.name + "` as an argument");
    result.custom.name = equation.name;
    result.custom.num_captured = std::int64_t(staged.captured.size());
    result.custom.body = make_closed_jaxpr(
        [&](std::span<const Array> inputs) {
          return eval_jaxpr(equation.body, inputs.first(operands.size()));
        },
        concatenate(operands, avals_of(result.constants)));
    return result;
  }
  bool is_failure() const override { return rules_.is_failure(); }
  const CustomRules rules_;
  const Arrays captured_;
  const DefaultDTypes dtypes_ = DefaultDTypes::current();
};

}  // namespace

std::optional<TracedRules> trace_pending_rules(const Params& params) {
  const CustomDerivative custom(params);
  if (!custom.rules) return std::nullopt;
  Flags varies;
  for (const Aval& aval : custom.body->input_avals()) varies.push_back(is_differentiable(aval));
  std::fill(varies.end() - std::ptrdiff_t(custom.num_captured), varies.end(), false);
  try {
    const auto traced = custom.rules->traced(custom, varies);
    return TracedRules{traced->custom.to_params(),
                       make_closed_jaxpr([&](auto) { return traced->constants; }, {})};
  } catch (...) {
    if (!custom.rules->is_failure()) throw;
  }
  return std::nullopt;
}

Arrays stage_custom(const Function& function, const CustomRules& rules,
                    std::span<const Array> inputs, const std::string& name) {
  const Traced body = make_jaxpr(function, avals_of(inputs), rules.transform());
  Staged staged{name, avals_of(inputs), {}, {}};
  staged.outputs = body.jaxpr->output_avals();
  add_captured(body, staged.captured);
  CustomDerivative custom;
  custom.name = name;
  bool is_pending = rules.reads_zeros || StagedRule::waits();
  if (!is_pending) {
    Flags varies;
    for (const Aval& aval : staged.avals) varies.push_back(is_differentiable(aval));
    try {
      trace_rules(rules, varies, staged, custom);
    } catch (...) {
      if (StagedRule::is_endless() || !rules.is_failure()) throw;
      is_pending = true;
    }
  }
  if (is_pending) custom.rules = std::make_shared<UserRules>(rules, staged.captured);
  custom.body = staged.entry(body);
  custom.num_captured = std::int64_t(staged.captured.size());
  return bind(custom_derivative_p, concatenate(inputs, staged.captured), custom.to_params());
}

}  // namespace plait
