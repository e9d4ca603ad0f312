// custom_derivative: the primitive of a function with its own derivative rule. Every transform but
// differentiation rewrites function and rule alike, so that grad(vmap(custom_vjp f)) has the rule.
// Also traces custom_jvp and custom_vjp to it.
//
//   body           the function
//   jvp            primals, tangents -> outputs, tangents
//   fwd, bwd       primals -> outputs, residuals; residuals, cotangents -> cotangents of primals
//   name           shown in text, profiles and errors
//   num_captured   how many of the last operands are captured; absent: none
//   sizes          values of named sizes, which all the programs list, in order
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>
#include <plait/rules/interpret.h>
#include <plait/trace/suspended.h>
#include <plait/transforms/applied.h>
#include <plait/transforms/custom_rules.h>

#include <numeric>

namespace plait {

CustomDerivative::CustomDerivative(const Params& params)
    : body(open_body(params)), name(params.text("name")) {
  if (params.has("num_captured")) num_captured = params.integer("num_captured");
  if (params.has("jvp")) {
    jvp = open_body(params, "jvp");
  } else {
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

Differentiated linearize_custom(std::span<const Array> primals, std::span<const Tangent> tangents,
                                const Params& params, Trace* linear) {
  const CustomDerivative custom(params);
  refuse_captured(custom, primals, tangents);
  return custom.jvp ? linearize_by_jvp(custom, primals, tangents, linear)
                    : linearize_by_bwd(custom, primals, tangents, linear);
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

// Function and rules must agree on every batch axis, so all are first.
std::vector<Batched> batch_custom(Dim size, std::span<const Batched> inputs, const Params& params) {
  const CustomDerivative custom(params);
  const BatchedInFront front(size, inputs);
  CustomDerivative now = custom;
  const auto body = batch_jaxpr(custom.body, size, front.dims, true);
  now.body = body->jaxpr;
  if (custom.jvp) now.jvp = batched_jvp(custom.jvp, size, front.dims);
  if (custom.fwd) now.fwd = batch_jaxpr(custom.fwd, size, front.dims, true)->jaxpr;
  if (custom.bwd) now.bwd = batched_bwd(custom, size, front.dims);
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
// function would be traced without end.
class StagedRule {
 public:
  explicit StagedRule(const std::string& name) {
    constexpr int deepest = 50;
    if (depth_ == deepest)
      throw TracerError(
          "the rule of `" + name + "` applies `" + name + "` again, and is traced without end",
          "use in the rule a function without a rule of its own");
    ++depth_;
  }
  ~StagedRule() { --depth_; }
  StagedRule(const StagedRule&) = delete;

 private:
  inline static thread_local int depth_ = 0;
};

// A traced function, and what it and its rules captured.
struct Staged {
  std::vector<Aval> avals;  // of the function's inputs
  Traced body;
  Arrays captured;  // by the function or its rules

  explicit Staged(const Function& function, std::span<const Array> inputs, const char* transform)
      : avals(avals_of(inputs)), body(make_jaxpr(function, avals, transform)) {
    add_captured(body, captured);
  }
  // The program with the captured arrays as operands after its own.
  Jaxpr entry(const Traced& traced) const {
    return with_captured(traced, avals, avals.size(), captured, {});
  }
  Arrays apply(CustomDerivative custom, std::span<const Array> inputs, const std::string& name) {
    custom.name = name;
    custom.body = entry(body);
    custom.num_captured = std::int64_t(captured.size());
    return bind(custom_derivative_p, concatenate(inputs, captured), custom.to_params());
  }
};

// fwd, which returns outputs and residuals in one list.
Traced traced_fwd(const flat::ForwardRule& fwd, const Staged& staged, const std::string& name) {
  const std::vector<Aval> outputs = staged.body.jaxpr->output_avals();
  Traced traced = make_jaxpr(
      [&](std::span<const Array> arguments) {
        const flat::Forward result = fwd(arguments);
        if (result.outputs.size() != outputs.size())
          throw TreeError("the fwd rule of `" + name + "` returned " +
                              std::to_string(result.outputs.size()) +
                              " outputs, and the function has " + std::to_string(outputs.size()),
                          "return a pair: the outputs, and residuals for bwd");
        return concatenate(result.outputs, result.residuals);
      },
      staged.avals, "custom_vjp");
  const std::vector<Aval> results = traced.jaxpr->output_avals();
  for (std::size_t i = 0; i < outputs.size(); ++i)
    check_rule_output("the fwd rule", name, i, results[i], outputs[i]);
  return traced;
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

}  // namespace

Arrays stage_custom_jvp(const Function& function, const Function& jvp,
                        std::span<const Array> inputs, const std::string& name) {
  const StagedRule deeper(name);
  Staged staged(function, inputs, "custom_jvp");
  const std::vector<Aval> both = concatenate(staged.avals, staged.avals);
  const Traced rule = make_jaxpr(jvp, both, "custom_jvp");
  const std::vector<Aval> outputs = staged.body.jaxpr->output_avals(),
                          results = rule.jaxpr->output_avals();
  if (results.size() != 2 * outputs.size())
    throw TreeError("the jvp rule of `" + name + "` returned " + std::to_string(results.size()) +
                        " arrays, and the function has " + std::to_string(outputs.size()) +
                        " outputs",
                    "return a pair: the outputs, and their tangents in the same structure");
  for (std::size_t i = 0; i < results.size(); ++i)
    check_rule_output("the jvp rule", name, i, results[i], outputs[i % outputs.size()]);
  add_captured(rule, staged.captured);
  // The entry takes primals, captured arrays, tangents, and tangents of captured ones, which are
  // zero.
  std::vector<std::size_t> repeats(staged.captured.size());
  std::iota(repeats.begin(), repeats.end(), std::size_t(0));
  CustomDerivative custom;
  custom.jvp = with_captured(rule, both, staged.avals.size(), staged.captured, repeats);
  return staged.apply(std::move(custom), inputs, name);
}

Arrays stage_custom_vjp(const Function& function, const flat::ForwardRule& fwd, const Function& bwd,
                        std::span<const Array> inputs, const std::string& name) {
  const StagedRule deeper(name);
  Staged staged(function, inputs, "custom_vjp");
  const Traced forward = traced_fwd(fwd, staged, name);
  // bwd takes residuals, then the cotangents of outputs that have one.
  const std::vector<Aval> outputs = staged.body.jaxpr->output_avals(),
                          results = forward.jaxpr->output_avals();
  std::vector<Aval> avals(results.begin() + std::ptrdiff_t(outputs.size()), results.end());
  const std::size_t num_residuals = avals.size();
  for (const Aval& aval : outputs)
    if (is_differentiable(aval)) avals.push_back(tangent_aval(aval));
  const OnlineBackward rule{bwd, staged.avals, outputs, name};
  const Traced backward = make_jaxpr(
      [&](std::span<const Array> arguments) { return rule.pull(arguments); }, avals, "custom_vjp");
  add_captured(forward, staged.captured);
  add_captured(backward, staged.captured);
  CustomDerivative custom;
  custom.fwd = fwd_entry(staged, forward);
  custom.bwd = bwd_entry(staged, backward, num_residuals);
  return staged.apply(std::move(custom), inputs, name);
}

}  // namespace plait
