// The rules of scan: a transform makes a scan of the transformed body. Which carries have tangents,
// depend on linear inputs, or have a batch axis is found by fixed-point iteration.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/stack.h>
#include <plait/control/primitives.h>
#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/bodies.h>
#include <plait/rules/emit.h>
#include <plait/rules/interpret.h>
#include <plait/rules/prune.h>
#include <plait/rules/speculate.h>
#include <plait/rules/steps.h>
#include <plait/transforms/bodies.h>

#include "control/bodies.h"
#include "control/rows.h"
#include "primitives/indexing/indexing.h"

namespace plait {
namespace {

// The role of an operand of scan in the loop.
enum class Role { carry, xs, consts };
Role role_of(const ScanParams& scan, std::size_t input) {
  return input < scan.num_carry                 ? Role::carry
         : input < scan.num_carry + scan.num_xs ? Role::xs
                                                : Role::consts;
}

// The inputs or outputs of a scan, split by role. List is a list of arrays, avals or flags.
template <class List>
struct ByRole {
  List carry, xs, consts;
  List& operator[](Role role) {
    return role == Role::carry ? carry : role == Role::xs ? xs : consts;
  }
  static ByRole of(const List& all, std::size_t num_carry, std::size_t num_xs) {
    const auto begin = all.begin(), xs = begin + std::ptrdiff_t(num_carry),
               consts = xs + std::ptrdiff_t(num_xs);
    return {List(begin, xs), List(xs, consts), List(consts, all.end())};
  }
  List joined() const { return concatenate(concatenate(carry, xs), consts); }
};
template <class List>
ByRole<List> by_role(const List& all, const ScanParams& scan) {
  return ByRole<List>::of(all, scan.num_carry, scan.num_xs);
}

// A scan derived from another: operands by role, and the body as a function of slices by role.
struct Draft {
  ByRole<Arrays> operands;
  std::function<ByRole<Arrays>(const ByRole<std::span<const Array>>& slices)>
      body;  // carry, ys (xs)
  bool reverse = false;
};

flat::Scanned bind_scan(const ScanParams& like, const Draft& draft, const std::vector<Dim>& sizes) {
  ScanParams scan = like;
  scan.num_carry = draft.operands.carry.size();
  scan.num_xs = draft.operands.xs.size();
  scan.reverse = draft.reverse;
  const ByRole<std::vector<Aval>> avals{avals_of(draft.operands.carry),
                                        slices_of(avals_of(draft.operands.xs)),
                                        avals_of(draft.operands.consts)};
  scan.body = make_closed_jaxpr(
      [&](std::span<const Array> inputs) {
        const ByRole<Arrays> results =
            draft.body({inputs.first(scan.num_carry), inputs.subspan(scan.num_carry, scan.num_xs),
                        inputs.subspan(scan.num_carry + scan.num_xs)});
        return results.joined();
      },
      avals.joined(), sizes);
  const Arrays outputs = bind(scan_p, draft.operands.joined(), scan.to_params());
  return {slice(outputs, 0, scan.num_carry), slice(outputs, scan.num_carry, outputs.size())};
}

// --- Differentiation -----------------------------------------------------------------------------

// Forward mode: one scan over primals and tangents.
Differentiated jvp_scan(const ScanParams& scan, std::span<const Array> primals,
                        const Tangents& tangents, const JvpJaxpr& jvp) {
  const std::size_t num_outputs = scan.body->outputs.size();
  const Flags flags = nonzero(tangents);
  const ByRole<Flags> has = by_role(flags, scan);
  const ByRole<Tangents> of = by_role(tangents, scan);
  const ByRole<Arrays> values = by_role(Arrays(primals.begin(), primals.end()), scan);
  Draft draft;
  draft.reverse = scan.reverse;
  draft.operands = {concatenate(values.carry, nonzero_arrays(of.carry)),
                    concatenate(values.xs, nonzero_arrays(of.xs)),
                    concatenate(values.consts, nonzero_arrays(of.consts))};
  draft.body = [&](const ByRole<std::span<const Array>>& in) -> ByRole<Arrays> {
    const std::size_t c = scan.num_carry, x = scan.num_xs, k = scan.num_consts();
    Arrays inputs;
    for (auto part : {in.carry.first(c), in.xs.first(x), in.consts.first(k), in.carry.subspan(c),
                      in.xs.subspan(x), in.consts.subspan(k)})
      inputs.insert(inputs.end(), part.begin(), part.end());
    const Arrays outputs = eval_jaxpr(jvp.jaxpr, inputs);
    const std::size_t first_y = num_outputs + (in.carry.size() - c);
    return {concatenate(slice(outputs, 0, c), slice(outputs, num_outputs, first_y)),
            concatenate(slice(outputs, c, num_outputs), slice(outputs, first_y, outputs.size())),
            {}};
  };
  const flat::Scanned done = bind_scan(scan, draft, scan.body->sizes);
  const std::size_t num_ys = num_outputs - scan.num_carry;
  Differentiated result{
      concatenate(slice(done.carry, 0, scan.num_carry), slice(done.ys, 0, num_ys)), {}};
  result.tangents = spread(concatenate(slice(done.carry, scan.num_carry, done.carry.size()),
                                       slice(done.ys, num_ys, done.ys.size())),
                           jvp.nonzero_outputs, avals_of(result.outputs));
  return result;
}

// Where the linear scan reads a residual of the body from.
struct Residuals {
  enum class Kind { stacked, sliced, shared };  // one per step; a slice of xs; one for all steps
  std::vector<Kind> kinds;
  std::vector<Array> sources;  // by residual: the xs or the shared value; empty for stacked ones
};

Residuals residuals_of(const ScanParams& scan, const Jaxpr& known, std::span<const Array> primals) {
  const std::size_t num_varying = scan.num_carry + scan.num_xs;
  const std::size_t num_outputs = scan.body->outputs.size();
  const Invariants shared =
      eval_invariants(known, num_varying, num_outputs, primals.subspan(num_varying));
  Residuals residuals;
  std::size_t next = 0;
  for (std::size_t i = num_outputs; i < known->outputs.size(); ++i) {
    const Atom& atom = known->outputs[i];
    const std::size_t operand = atom.is_var() ? std::size_t(atom.var().id) : num_varying;
    const bool is_x = operand >= scan.num_carry && operand < num_varying;
    const bool is_shared = shared.is_invariant[i - num_outputs];
    residuals.kinds.push_back(is_shared ? Residuals::Kind::shared
                              : is_x    ? Residuals::Kind::sliced
                                        : Residuals::Kind::stacked);
    residuals.sources.push_back(is_shared ? shared.values[next++]
                                : is_x    ? primals[operand]
                                          : Array());
  }
  return residuals;
}

// Reverse mode: a scan of the primals that stacks residuals, and a linear scan that reads them.
Differentiated linearize_in_two(const ScanParams& scan, std::span<const Array> primals,
                                const Tangents& tangents, const LinearizedJaxpr& jaxprs,
                                Trace* linear) {
  const std::size_t num_outputs = scan.body->outputs.size();
  const Residuals residuals = residuals_of(scan, jaxprs.known, primals);
  const ByRole<Arrays> values = by_role(Arrays(primals.begin(), primals.end()), scan);
  Draft known;
  known.reverse = scan.reverse;
  known.operands = values;
  known.body = [&](const ByRole<std::span<const Array>>& in) -> ByRole<Arrays> {
    Arrays inputs;
    for (auto part : {in.carry, in.xs, in.consts})
      inputs.insert(inputs.end(), part.begin(), part.end());
    const Arrays outputs = eval_jaxpr(jaxprs.known, inputs);
    Arrays ys = slice(outputs, scan.num_carry, num_outputs);
    for (std::size_t i = 0; i < residuals.kinds.size(); ++i)
      if (residuals.kinds[i] == Residuals::Kind::stacked) ys.push_back(outputs[num_outputs + i]);
    return {slice(outputs, 0, scan.num_carry), ys, {}};
  };
  const flat::Scanned done = bind_scan(scan, known, scan.body->sizes);
  const std::size_t num_ys = num_outputs - scan.num_carry;
  Differentiated result{concatenate(done.carry, slice(done.ys, 0, num_ys)), {}};

  const ByRole<Tangents> of = by_role(tangents, scan);
  Draft derivative;
  derivative.reverse = scan.reverse;
  // The flags of a flagged scan remain the first of its xs.
  const std::size_t num_flags = scan.flagged ? 1 : 0;
  const Arrays flags = slice(primals, scan.num_carry, scan.num_carry + num_flags);
  derivative.operands = {nonzero_arrays(of.carry), concatenate(flags, nonzero_arrays(of.xs)),
                         nonzero_arrays(of.consts)};
  const std::size_t num_tx = derivative.operands.xs.size(),
                    num_tk = derivative.operands.consts.size();
  std::size_t next_stacked = num_ys;
  for (std::size_t i = 0; i < residuals.kinds.size(); ++i) {
    if (residuals.kinds[i] == Residuals::Kind::shared)
      derivative.operands.consts.push_back(residuals.sources[i]);
    else if (residuals.kinds[i] == Residuals::Kind::sliced)
      derivative.operands.xs.push_back(residuals.sources[i]);
    else
      derivative.operands.xs.push_back(done.ys[next_stacked++]);
  }
  derivative.body = [&](const ByRole<std::span<const Array>>& in) -> ByRole<Arrays> {
    Arrays inputs(in.carry.begin(), in.carry.end());
    inputs.insert(inputs.end(), in.xs.begin() + std::ptrdiff_t(num_flags),
                  in.xs.begin() + std::ptrdiff_t(num_tx));
    inputs.insert(inputs.end(), in.consts.begin(), in.consts.begin() + std::ptrdiff_t(num_tk));
    std::size_t x = num_tx, k = num_tk;
    for (const Residuals::Kind kind : residuals.kinds)
      inputs.push_back(kind == Residuals::Kind::shared ? in.consts[k++] : in.xs[x++]);
    const Arrays outputs = eval_jaxpr(jaxprs.linear, inputs);
    return {
        slice(outputs, 0, in.carry.size()), slice(outputs, in.carry.size(), outputs.size()), {}};
  };
  TraceScope scope(linear);
  const flat::Scanned pushed = bind_scan(scan, derivative, scan.body->sizes);
  result.tangents = spread(concatenate(pushed.carry, pushed.ys), jaxprs.nonzero_outputs,
                           avals_of(result.outputs));
  return result;
}

Differentiated linearize_scan(std::span<const Array> primals, std::span<const Tangent> given,
                              const Params& params, Trace* linear) {
  const ScanParams scan(params);
  Tangents tangents(given.begin(), given.end());
  Flags has = nonzero(tangents);
  const bool is_forward = linear == Trace::current();
  const Flags instantiate = mark_tangents(scan.body, has, scan.num_carry, is_forward);
  {
    TraceScope scope(linear);
    for (std::size_t i = 0; i < scan.num_carry; ++i)
      if (has[i]) tangents[i] = tangents[i].instantiate();
  }
  if (is_forward) return jvp_scan(scan, primals, tangents, *jvp_jaxpr(scan.body, has, instantiate));
  return linearize_in_two(scan, primals, tangents, *linearize_jaxpr(scan.body, has, instantiate),
                          linear);
}

// A linear input of the scan that is transposed.
struct LinearInput {
  std::size_t index;
  Role role;
  bool gets_cotangent;  // from the transposed body
};
std::vector<LinearInput> linear_inputs_of(const ScanParams& scan, const Flags& is_linear,
                                          const TransposedJaxpr& transposed) {
  std::vector<LinearInput> linear;
  for (std::size_t i = 0; i < is_linear.size(); ++i)
    if (is_linear[i])
      linear.push_back({i, role_of(scan, i), transposed.nonzero_inputs[linear.size()]});
  return linear;
}

// Whether a part of an input has a cotangent that is added where it belongs.
bool accumulates(const Jaxpr& body, std::size_t input) {
  return std::any_of(body->equations.begin(), body->equations.end(), [&](const Equation& e) {
    return !e.inputs.empty() && e.inputs[0] == Atom(Var{int(input)}) &&
           Accumulate::table().find(*e.primitive);
  });
}

// Transposes a scan whose carries are all linear to a scan in the opposite direction. Its carries
// are the cotangents of the carries that have one, then the accumulated cotangents of linear
// consts. Its xs are the known xs, then the cotangents of the ys. Its ys are the cotangents of
// linear xs.
Tangents transpose_linear(const ScanParams& scan, const Flags& is_linear,
                          std::span<const Tangent> cotangents,
                          std::span<const TransposeInput> inputs) {
  // A carry has a cotangent if its last value has one, or if the transposed body gives it one.
  Flags has_cotangent = nonzero(cotangents);
  auto transposed = transpose_jaxpr(scan.body, is_linear, has_cotangent);
  while (widen(has_cotangent, transposed->nonzero_inputs, scan.num_carry))
    transposed = transpose_jaxpr(scan.body, is_linear, has_cotangent);
  const std::vector<LinearInput> linear = linear_inputs_of(scan, is_linear, *transposed);
  Flags sums(is_linear.size(), false);  // consts whose cotangents are added where they belong
  for (const LinearInput& input : linear)
    sums[input.index] =
        input.role == Role::consts && input.gets_cotangent && accumulates(scan.body, input.index);
  if (std::find(sums.begin(), sums.end(), true) != sums.end())
    transposed = transpose_jaxpr(scan.body, is_linear, has_cotangent, sums);

  Draft draft;
  draft.reverse = !scan.reverse;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!is_linear[i]) draft.operands[role_of(scan, i)].push_back(inputs[i].known());
  const std::size_t num_known_xs = draft.operands.xs.size();
  for (std::size_t i = 0; i < cotangents.size(); ++i) {
    if (!has_cotangent[i]) continue;
    if (i < scan.num_carry)
      draft.operands.carry.push_back(cotangents[i].instantiate());
    else
      draft.operands.xs.push_back(cotangents[i].array());
  }
  const std::size_t num_pulled = draft.operands.carry.size();
  for (const LinearInput& input : linear)
    if (input.role == Role::consts && input.gets_cotangent)
      draft.operands.carry.push_back(lax::zeros_like(inputs[input.index].aval()));

  draft.body = [&](const ByRole<std::span<const Array>>& in) -> ByRole<Arrays> {
    Arrays arguments;
    for (auto part : {in.xs.first(num_known_xs), in.consts, in.carry.first(num_pulled),
                      in.xs.subspan(num_known_xs)})
      arguments.insert(arguments.end(), part.begin(), part.end());
    std::size_t next = 0, sum = num_pulled;
    for (const LinearInput& input : linear) {
      if (input.role != Role::consts || !input.gets_cotangent) continue;
      if (sums[input.index]) arguments.push_back(in.carry[sum]);
      ++sum;
    }
    const Arrays outputs = eval_jaxpr(transposed->jaxpr, arguments);
    ByRole<Arrays> results;
    sum = num_pulled;
    for (const LinearInput& input : linear) {
      if (input.role == Role::carry && has_cotangent[input.index])
        results.carry.push_back(input.gets_cotangent ? outputs[next++]
                                                     : lax::zeros_like(inputs[input.index].aval()));
      else if (input.role == Role::xs && input.gets_cotangent)
        results.xs.push_back(outputs[next++]);
      else if (input.role == Role::consts && input.gets_cotangent)
        results.carry.push_back(sums[input.index] ? outputs[next++]
                                                  : lax::add(in.carry[sum], outputs[next++]));
      sum += input.role == Role::consts && input.gets_cotangent;
    }
    return results;
  };
  const flat::Scanned done = bind_scan(scan, draft, scan.body->sizes);

  Tangents results;
  for (const TransposeInput& input : inputs) results.push_back(Tangent(input.aval()));
  std::size_t next_pulled = 0, next_x = 0, next_sum = num_pulled;
  for (const LinearInput& input : linear) {
    if (input.role == Role::carry && has_cotangent[input.index])
      results[input.index] = done.carry[next_pulled++];
    else if (input.role == Role::xs && input.gets_cotangent)
      results[input.index] = done.ys[next_x++];
    else if (input.role == Role::consts && input.gets_cotangent)
      results[input.index] = done.carry[next_sum++];
  }
  return results;
}

// The residuals that the linear half of a body reads from the known half.
struct SplitResiduals {
  Arrays stacked;     // one per step, stacked by the scan of the known half
  Invariants shared;  // the same for all steps, computed once before the loop
};

// Runs the known half of a body for its residuals.
SplitResiduals run_known_half(const ScanParams& scan, const SplitJaxpr& split,
                              std::span<const TransposeInput> inputs, const Flags& is_linear) {
  Draft known;
  known.reverse = scan.reverse;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!is_linear[i]) known.operands[role_of(scan, i)].push_back(inputs[i].known());
  const std::size_t num_varying = known.operands.carry.size() + known.operands.xs.size();
  const std::size_t num_outputs = split.rest_outputs.size() - count(split.rest_outputs);
  SplitResiduals residuals;
  residuals.shared = eval_invariants(split.known, num_varying, num_outputs, known.operands.consts);
  known.body = [&](const ByRole<std::span<const Array>>& in) -> ByRole<Arrays> {
    Arrays arguments;
    for (auto part : {in.carry, in.xs, in.consts})
      arguments.insert(arguments.end(), part.begin(), part.end());
    const Arrays outputs = eval_jaxpr(split.known, arguments);
    Arrays ys;
    for (std::size_t i = 0; i < residuals.shared.is_invariant.size(); ++i)
      if (!residuals.shared.is_invariant[i]) ys.push_back(outputs[num_outputs + i]);
    return {slice(outputs, 0, in.carry.size()), ys, {}};
  };
  residuals.stacked = bind_scan(scan, known, scan.body->sizes).ys;
  return residuals;
}

// The scan of the linear half of a body, as transpose_linear takes it. Operands are appended one by
// one: carries, then xs, then consts.
struct LinearHalf {
  ScanParams scan;
  std::vector<TransposeInput> inputs;
  Flags is_linear;
  std::vector<Aval> avals;  // of the body's inputs; for xs, of a slice

  // Appends an operand and returns its position.
  std::size_t add(const TransposeInput& input, const Aval& aval, bool linear) {
    inputs.push_back(input);
    avals.push_back(aval);
    is_linear.push_back(linear);
    return inputs.size() - 1;
  }
};

// Positions of operands among the inputs of a linear half.
struct LinearPlaces {
  std::vector<std::size_t> linear;           // of the linear inputs of the whole scan, in order
  std::vector<std::size_t> stacked, shared;  // of the residuals
};

LinearPlaces add_operands(LinearHalf& half, const ScanParams& whole,
                          std::span<const TransposeInput> inputs, const Flags& is_linear,
                          const SplitResiduals& residuals) {
  LinearPlaces places;
  auto add_linear = [&](Role role) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (is_linear[i] && role_of(whole, i) == role)
        places.linear.push_back(half.add(inputs[i], whole.body->avals[i], true));
  };
  add_linear(Role::carry);
  half.scan.num_carry = half.inputs.size();
  // The flags of a flagged scan are known, and remain the first of its xs.
  if (whole.flagged) half.add(inputs[whole.num_carry], whole.body->avals[whole.num_carry], false);
  add_linear(Role::xs);
  for (const Array& residual : residuals.stacked)
    places.stacked.push_back(half.add(residual, slices_of({residual.aval()})[0], false));
  half.scan.num_xs = half.inputs.size() - half.scan.num_carry;
  add_linear(Role::consts);
  for (const Array& value : residuals.shared.values)
    places.shared.push_back(half.add(value, value.aval(), false));
  return places;
}

// The body of the linear half, with inputs in the order of its operands. The jaxpr `rest` takes the
// linear inputs, then the residuals in the order in which the known half returns them.
Jaxpr body_of_half(const LinearHalf& half, const LinearPlaces& places, const Jaxpr& rest,
                   const Flags& is_shared, const std::vector<Dim>& sizes) {
  return make_closed_jaxpr(
      [&](std::span<const Array> in) {
        Arrays arguments;
        for (const std::size_t place : places.linear) arguments.push_back(in[place]);
        auto stacked = places.stacked.begin(), shared = places.shared.begin();
        for (const bool is : is_shared) arguments.push_back(in[is ? *shared++ : *stacked++]);
        return eval_jaxpr(rest, arguments);
      },
      half.avals, sizes);
}

// Transposes a scan some of whose carries are known. Its body is split: what does not depend on
// linear inputs runs first and leaves residuals, and the linear rest is transposed.
Tangents transpose_split(const ScanParams& scan, const Flags& is_linear,
                         std::span<const Tangent> cotangents,
                         std::span<const TransposeInput> inputs) {
  const auto split = split_jaxpr(scan.body, is_linear);
  const SplitResiduals residuals = run_known_half(scan, *split, inputs, is_linear);
  LinearHalf half{scan, {}, {}, {}};
  const LinearPlaces places = add_operands(half, scan, inputs, is_linear, residuals);
  half.scan.body =
      body_of_half(half, places, split->rest, residuals.shared.is_invariant, scan.body->sizes);
  Tangents half_cotangents;
  for (std::size_t i = 0; i < cotangents.size(); ++i)
    if (split->rest_outputs[i]) half_cotangents.push_back(cotangents[i]);
  const Tangents pulled = transpose_linear(half.scan, half.is_linear, half_cotangents, half.inputs);
  Tangents results;
  auto place = places.linear.begin();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    results.push_back(is_linear[i] ? pulled[*place++] : Tangent(inputs[i].aval()));
  return results;
}

Tangents transpose_scan(std::span<const Tangent> cotangents, std::span<const TransposeInput> inputs,
                        const Params& params) {
  const ScanParams scan(params);
  Flags linear;
  for (const TransposeInput& input : inputs) linear.push_back(input.is_linear());
  // A carry that starts known and becomes linear counts as linear: its start is an added constant.
  while (widen(linear, dependent_outputs(scan.body, linear), scan.num_carry)) {
  }
  const bool all_linear = count(part(linear, 0, scan.num_carry)) == scan.num_carry;
  return all_linear ? transpose_linear(scan, linear, cotangents, inputs)
                    : transpose_split(scan, linear, cotangents, inputs);
}

// --- Batching and masking ------------------------------------------------------------------------

std::vector<Batched> batch_scan(Dim size, std::span<const Batched> inputs, const Params& params) {
  const ScanParams scan(params);
  if (scan.flagged && inputs[scan.num_carry].dim) return bind_lanes(scan_p, size, inputs, params);
  Flags batched;
  for (const Batched& input : inputs) batched.push_back(input.dim.has_value());
  // In slices of xs the batch axis comes first, so in the xs it follows the scanned axis.
  auto dims = [&] {
    std::vector<std::optional<int>> result;
    for (bool flag : batched) result.push_back(flag ? std::optional<int>(0) : std::nullopt);
    return result;
  };
  auto outputs_with_batch = [&] {
    Flags flags;
    for (const auto& dim : batch_jaxpr(scan.body, size, dims())->out_dims)
      flags.push_back(dim.has_value());
    return flags;
  };
  while (widen(batched, outputs_with_batch(), scan.num_carry)) {
  }
  Flags force = outputs_with_batch();
  std::copy(batched.begin(), batched.begin() + std::ptrdiff_t(scan.num_carry), force.begin());
  ScanParams now = scan;
  now.body = batch_jaxpr(scan.body, size, dims(), force)->jaxpr;
  Arrays operands;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_x = i >= scan.num_carry && i < scan.num_carry + scan.num_xs;
    if (!batched[i])
      operands.push_back(inputs[i].array);
    else if (is_x && inputs[i].array.aval().stack == 0)
      operands.push_back(indexing::move_batch(inputs[i], size, 1));
    else
      operands.push_back(batch_to_front(inputs[i], size));
  }
  std::vector<Batched> results;
  for (Array& output : bind(scan_p, operands, now.to_params())) {
    const std::size_t i = results.size();
    const int dim = i < scan.num_carry || output.aval().stack > 0 ? 0 : 1;
    results.push_back({std::move(output), force[i] ? std::optional<int>(dim) : std::nullopt});
  }
  return results;
}

// All examples step together. Where flags say which examples take a step, the others keep their
// carry.
std::vector<Batched> batch_scan_together(const LiveExamples& examples,
                                         std::span<const Batched> inputs, const Params& params) {
  const ScanParams scan(params);
  const Dim size = examples.size;
  const std::span<const Batched> of_xs = inputs.subspan(scan.num_carry, scan.num_xs);
  Arrays xs;
  for (const Batched& value : of_xs) {
    const bool moves = value.dim && value.array.aval().stack == 0;
    xs.push_back(moves ? indexing::move_batch(value, size, 1) : value.array);
  }
  const Function step = [&](std::span<const Array> now) {
    std::vector<Batched> arguments;
    for (std::size_t i = 0; i < now.size(); ++i) {
      const bool batched = i < scan.num_carry || of_xs[i - scan.num_carry].dim;
      arguments.push_back({now[i], batched ? std::optional<int>(0) : std::nullopt});
    }
    const auto consts = inputs.subspan(scan.num_carry + scan.num_xs);
    arguments.insert(arguments.end(), consts.begin(), consts.end());
    if (!scan.flagged) return to_front(examples.run(scan.body, arguments), size);
    const Array mine = batch_to_front(arguments[scan.num_carry], size);
    const Arrays before = slice(now, 0, scan.num_carry);
    std::vector<int> inner;  // axes of inner lanes, already decomposed
    for (int i = 1; i < mine.ndim(); ++i) inner.push_back(i);
    const Array any = inner.empty() ? mine : lax::reduce_or(mine, inner);
    Arrays after = to_front(examples.run_marked(any, scan.body, arguments), size);
    for (std::size_t i = 0; i < after.size(); ++i)
      after[i] = choose_examples(mine, after[i],
                                 i < before.size() ? before[i] : lax::zeros_like(after[i].aval()));
    return after;
  };
  const flat::Scanned done =
      scan_like(scan, step, to_front(inputs.first(scan.num_carry), size), xs);
  std::vector<Batched> results = in_front(done.carry);
  for (const Array& y : done.ys) results.push_back({y, y.aval().stack > 0 ? 0 : 1});
  return results;
}

// Examples diverge in a scan over batched stacks, whose heights may differ.
bool scan_diverges(const Params& params, const Flags& batched) {
  const ScanParams scan(params);
  return !scan.length && batched[scan.num_carry] &&
         are_arrays(scan.body->input_avals().first(scan.num_carry));
}

void visit_scan(std::span<const Array> inputs, const Params& params, std::span<const std::int64_t>,
                const Steps::Visit& visit) {
  const ScanParams scan(params);
  const std::size_t n = scan.num_carry, first_const = n + scan.num_xs;
  Arrays carry = slice(inputs, 0, n);
  const Arrays consts = slice(inputs, first_const, inputs.size());
  std::int64_t length = scan.length ? scan.length->constant() : 0;
  for (std::size_t i = n; !scan.length && i < first_const; ++i)
    length = std::max(length, num_slices(inputs[i]));
  for (std::int64_t number = 0; number < length; ++number) {
    const std::int64_t index = scan.reverse ? length - 1 - number : number;
    Arrays xs;
    for (std::size_t i = n; i < first_const; ++i) xs.push_back(slice_at(inputs[i], index));
    if (scan.flagged && xs[0].item<std::int64_t>() == 0) continue;  // another example's step
    const Arrays outputs = visit({scan.body, concatenate(concatenate(carry, xs), consts), "scan",
                                  "step " + std::to_string(index)});
    carry = slice(outputs, 0, n);
  }
}

// Masks the body. If the scanned axis is ragged, steps in its padding leave the carry unchanged.
Arrays mask_scan(std::span<const Masked> inputs, std::span<const Aval>, const Params& params,
                 const SizeValues& sizes) {
  const ScanParams scan(params);
  const bool is_ragged = scan.length && !(sizes.bound(*scan.length) == *scan.length);
  ScanParams now = scan;
  if (is_ragged) now.length = sizes.bound(*scan.length);
  SizeValues outside = from_outside(sizes);
  outside.checked &= !is_ragged;
  std::vector<Aval> real(scan.body->input_avals().begin(), scan.body->input_avals().end());
  ByRole<Arrays> operands;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    operands[role_of(scan, i)].push_back(inputs[i].padded);
  auto body = [&](std::span<const Array> arguments) {
    const std::size_t shift = is_ragged ? 1 : 0;
    std::vector<Masked> values;
    for (std::size_t i = 0; i < real.size(); ++i)
      values.push_back({arguments[(i < scan.num_carry ? 0 : shift) + i], real[i]});
    Arrays results;
    const Array index = is_ragged ? arguments[scan.num_carry] : Array();
    for (const Masked& value : eval_masked(scan.body, values, outside)) {
      const std::size_t i = results.size();
      if (is_ragged && i < scan.num_carry) {
        const Array alive = lax::lt(index, outside.value(*scan.length));
        results.push_back(lax::select(alive, value.padded, arguments[i]));
      } else {
        results.push_back(value.padded);
      }
    }
    return results;
  };
  const Arrays steps = is_ragged ? Arrays{lax::iota(DType::int32, {*now.length}, 0)} : Arrays{};
  // Consts are operands already, but the sizes that the body reads are captured.
  Function step = [&](std::span<const Array> carry_and_xs) {
    Arrays arguments(carry_and_xs.begin(), carry_and_xs.end());
    arguments.insert(arguments.end(), operands.consts.begin(), operands.consts.end());
    return body(arguments);
  };
  const flat::Scanned done = scan_like(now, step, operands.carry, concatenate(steps, operands.xs));
  return concatenate(done.carry, done.ys);
}

PrunedEquation prune_scan(const Params& params, Flags outputs) {
  ScanParams scan(params);
  Flags inputs = none_of(scan.body);
  // Stacks determine the length of the loop; in a flagged scan, the flags alone do.
  const std::size_t num_kept = scan.flagged ? 1 : scan.length ? 0 : scan.num_xs;
  std::fill_n(inputs.begin() + std::ptrdiff_t(scan.num_carry), num_kept, true);
  const auto pruned = prune_loop(scan.body, outputs, scan.num_carry, std::move(inputs));
  const std::size_t first_const = scan.num_carry + scan.num_xs;
  scan.num_xs = count(part(pruned->inputs, scan.num_carry, first_const));
  scan.num_carry = count(part(outputs, 0, scan.num_carry));
  scan.body = pruned->jaxpr;
  return {scan.to_params(), pruned->inputs, std::move(outputs)};
}

}  // namespace

// --- Stacks -------------------------------------------------------------------------------------

namespace {

Array map_by_scan(std::span<const Array> stacks,
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

[[maybe_unused]] const bool maps_stacks = (set_stack_mapper(map_by_scan), true);

}  // namespace

// --- The block ----------------------------------------------------------------------------------

ScanParams::ScanParams(const Params& params)
    : body(open_bodies(params).get<Jaxpr>("body")),
      num_carry(std::size_t(params.integer("carry"))),
      num_xs(std::size_t(params.integer("xs"))),
      reverse(params.flag("reverse")) {
  if (params.has("length")) length = params.get<Dim>("length");
  if (params.has("flagged")) flagged = params.flag("flagged");
  if (params.has("settled")) settled = params.flag("settled");
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
  if (settled) entries.emplace_back("settled", true);
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

namespace {

// By how much each carry grows in a step, where the body adds a literal to it.
std::vector<std::optional<std::int64_t>> growth_of(const ScanParams& scan) {
  std::vector<std::optional<std::int64_t>> growth(scan.num_carry);
  for (const Equation& equation : scan.body->equations) {
    if (!(*equation.primitive == add_p)) continue;
    for (std::size_t i = 0; i < scan.num_carry; ++i) {
      if (!(scan.body->outputs[i] == Atom(equation.outputs[0]))) continue;
      for (std::size_t side = 0; side < 2; ++side)
        if (equation.inputs[side] == Atom(Var{int(i)}) && !equation.inputs[1 - side].is_var() &&
            is_integer(scan.body->avals[i].dtype))
          growth[i] = equation.inputs[1 - side].literal().integer;
    }
  }
  return growth;
}

loops::Tensors emit_scan(loops::Writer& w, const Equation& equation,
                         std::span<const loops::Tensor> inputs) {
  const ScanParams scan(equation.params);
  if (!scan.length || scan.flagged) w.refuse("stacks");
  const std::int64_t steps = scan.length->constant();
  const std::size_t n = scan.num_carry, first_const = n + scan.num_xs;
  const std::vector<Aval> outputs = scan.body->output_avals();
  loops::Tensors xs, ys;
  for (std::size_t i = n; i < first_const; ++i) xs.push_back(w.in_memory(inputs[i]));
  for (std::size_t i = n; i < outputs.size(); ++i) ys.push_back(w.make(scan.stacked(outputs[i])));
  Flags owned(std::size_t(scan.body->num_binders), false);
  std::fill_n(owned.begin(), n, true);
  loops::Tensors results = w.repeat(
      steps, n, growth_of(scan), [&](loops::Value step, std::span<const loops::Tensor> carry) {
        const loops::Value index =
            scan.reverse ? w.compute(sub_p, {}, {w.integer(steps - 1), step}, {}) : step;
        loops::Tensors operands(carry.begin(), carry.end());
        for (const loops::Tensor& x : xs) operands.push_back(slice_at(x, index));
        operands.insert(operands.end(), inputs.begin() + std::ptrdiff_t(first_const), inputs.end());
        loops::Writer::Next next{w.lower(scan.body, std::move(operands), owned)};
        for (std::size_t i = 0; i < ys.size(); ++i)
          next.copies.emplace_back(next.carries[n + i], slice_at(ys[i], index));
        next.carries.resize(n);
        return next;
      });
  results.insert(results.end(), ys.begin(), ys.end());
  return results;
}

}  // namespace

constinit const Primitive scan_p{"scan"};
static const auto scan_def =
    define(scan_p, "Applies a body to each slice of arrays along their first axis, with a carry.")
        .family(holds_programs())
        .refuse<Eval>(runs_elsewhere)
        .rule<Prune>(prune_scan)
        .rule<Linearize>(linearize_scan)
        .rule<Transpose>(transpose_scan)
        .rule<Batch>(batch_scan)
        .rule<Mask>(mask_scan)
        .rule<Steps>(visit_scan)
        .rule<Diverge>({batch_scan_together, scan_diverges})
        .rule<Emit>(emit_scan)
        .rule<Bodies>([](const Params& params) {
          const ScanParams scan(params);
          return std::vector<Body>{
              {scan.body, Body::Runs::repeatedly, scan.length.value_or(1), scan.length.has_value(),
               operands_of_loop(scan.num_carry, int(scan.num_carry), scan.body)}};
        })
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
}  // namespace plait
