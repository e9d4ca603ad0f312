// What transforms make of a scan: a scan of the transformed body. Which carries have tangents,
// depend on linear inputs, or have a batch axis is found by repetition until nothing changes.
// SPDX-License-Identifier: Apache-2.0
#include <plait/bodies.h>
#include <plait/numpy_shape.h>
#include <plait/ops.h>
#include <plait/ops_control.h>

namespace plait {
namespace {

// The inputs or outputs of a scan by role. A part of a list of arrays, avals or flags.
template <class List>
struct Parts {
  List carry, xs, consts;
  static Parts of(const List& all, std::size_t num_carry, std::size_t num_xs) {
    const auto begin = all.begin(), xs = begin + std::ptrdiff_t(num_carry),
               consts = xs + std::ptrdiff_t(num_xs);
    return {List(begin, xs), List(xs, consts), List(consts, all.end())};
  }
  List joined() const { return concatenate(concatenate(carry, xs), consts); }
};
template <class List>
Parts<List> parts_of(const List& all, const ScanParams& scan) {
  return Parts<List>::of(all, scan.num_carry, scan.num_xs);
}

// A scan being made from another: operands by role, and the body as a function of slices by role.
struct Draft {
  Parts<Arrays> operands;
  std::function<Parts<Arrays>(const Parts<std::span<const Array>>& slices)> body;  // carry, ys (xs)
  bool reverse = false;
};

flat::Scanned bind_scan(const ScanParams& like, const Draft& draft, const std::vector<Dim>& sizes) {
  ScanParams scan = like;
  scan.num_carry = draft.operands.carry.size();
  scan.num_xs = draft.operands.xs.size();
  scan.reverse = draft.reverse;
  const Parts<std::vector<Aval>> avals{avals_of(draft.operands.carry),
                                       slices_of(avals_of(draft.operands.xs)),
                                       avals_of(draft.operands.consts)};
  scan.body = make_closed_jaxpr(
      [&](std::span<const Array> inputs) {
        const Parts<Arrays> results =
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
                        const Tangents& tangents, const ForwardJaxpr& jvp) {
  const std::size_t num_outputs = scan.body->outputs.size();
  const Flags flags = nonzero(tangents);
  const Parts<Flags> has = parts_of(flags, scan);
  const Parts<Tangents> of = parts_of(tangents, scan);
  const Parts<Arrays> values = parts_of(Arrays(primals.begin(), primals.end()), scan);
  Draft draft;
  draft.reverse = scan.reverse;
  draft.operands = {concatenate(values.carry, nonzero_arrays(of.carry)),
                    concatenate(values.xs, nonzero_arrays(of.xs)),
                    concatenate(values.consts, nonzero_arrays(of.consts))};
  draft.body = [&](const Parts<std::span<const Array>>& in) -> Parts<Arrays> {
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

// Where a residual of the body comes from.
struct Residuals {
  enum class Kind { stacked, sliced, shared };  // one for each step; a slice of xs; one for all
  std::vector<Kind> kinds;
  std::vector<Array> sources;  // by residual: the xs or the shared value, nothing for stacked ones
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

// Reverse mode: a scan of the primals that stacks residuals, and a linear one over them.
Differentiated linearize_in_two(const ScanParams& scan, std::span<const Array> primals,
                                const Tangents& tangents, const JvpJaxpr& jaxprs, Trace* linear) {
  const std::size_t num_outputs = scan.body->outputs.size();
  const Residuals residuals = residuals_of(scan, jaxprs.known, primals);
  const Parts<Arrays> values = parts_of(Arrays(primals.begin(), primals.end()), scan);
  Draft known;
  known.reverse = scan.reverse;
  known.operands = values;
  known.body = [&](const Parts<std::span<const Array>>& in) -> Parts<Arrays> {
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

  const Parts<Tangents> of = parts_of(tangents, scan);
  Draft derivative;
  derivative.reverse = scan.reverse;
  // The flags of a flagged scan stay first.
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
  derivative.body = [&](const Parts<std::span<const Array>>& in) -> Parts<Arrays> {
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

// A scan whose carries are partly known: the known part runs first and stacks residuals; what is
// left has linear carries only.
Tangents transpose_split(const ScanParams& scan, const Flags& is_linear,
                         std::span<const Tangent> cotangents,
                         std::span<const TransposeInput> inputs);

Tangents transpose_linear(const ScanParams& scan, const Flags& is_linear,
                          std::span<const Tangent> cotangents,
                          std::span<const TransposeInput> inputs) {
  const Parts<Flags> linear = parts_of(is_linear, scan);
  Flags has_cotangent = nonzero(cotangents);
  // A carry has a cotangent where one flows into it from behind, or from another's.
  auto transposed = transpose_jaxpr(scan.body, is_linear, has_cotangent);
  while (widen(has_cotangent, transposed->nonzero_inputs, scan.num_carry))
    transposed = transpose_jaxpr(scan.body, is_linear, has_cotangent);
  const std::size_t num_pulled = std::size_t(std::count(
      has_cotangent.begin(), has_cotangent.begin() + std::ptrdiff_t(scan.num_carry), true));

  Draft draft;  // carry: cotangents of the carry, sums for consts. xs: known xs, cotangents of ys
  draft.reverse = !scan.reverse;
  std::size_t num_known_xs = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_linear[i]) continue;
    const bool is_x = i < scan.num_carry + scan.num_xs;
    (is_x ? draft.operands.xs : draft.operands.consts).push_back(inputs[i].known());
    num_known_xs += is_x;
  }
  for (std::size_t i = 0; i < cotangents.size(); ++i) {
    if (!has_cotangent[i]) continue;
    if (i < scan.num_carry)
      draft.operands.carry.push_back(cotangents[i].instantiate());
    else
      draft.operands.xs.push_back(cotangents[i].array());
  }
  std::size_t at = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!is_linear[i]) continue;
    const bool gets = transposed->nonzero_inputs[at++];
    if (!gets || i < scan.num_carry + scan.num_xs) continue;
    draft.operands.carry.push_back(lax::zeros_like(inputs[i].aval()));
  }
  draft.body = [&](const Parts<std::span<const Array>>& in) -> Parts<Arrays> {
    Arrays arguments(in.xs.begin(), in.xs.begin() + std::ptrdiff_t(num_known_xs));
    arguments.insert(arguments.end(), in.consts.begin(), in.consts.end());
    arguments.insert(arguments.end(), in.carry.begin(),
                     in.carry.begin() + std::ptrdiff_t(num_pulled));
    arguments.insert(arguments.end(), in.xs.begin() + std::ptrdiff_t(num_known_xs), in.xs.end());
    const Arrays outputs = eval_jaxpr(transposed->jaxpr, arguments);
    Parts<Arrays> results;
    std::size_t flag = 0, next = 0, sum = num_pulled;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!is_linear[i]) continue;
      const bool gets = transposed->nonzero_inputs[flag++];
      if (i < scan.num_carry) {
        if (has_cotangent[i])
          results.carry.push_back(gets ? outputs[next++] : lax::zeros_like(inputs[i].aval()));
        continue;
      }
      if (gets && i < scan.num_carry + scan.num_xs)
        results.xs.push_back(outputs[next++]);
      else if (gets)
        results.carry.push_back(lax::add(in.carry[sum++], outputs[next++]));
    }
    return results;
  };
  const flat::Scanned done = bind_scan(scan, draft, scan.body->sizes);
  Tangents results;
  std::size_t flag = 0, next_carry = 0, next_x = 0, next_sum = num_pulled;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool gets = is_linear[i] && transposed->nonzero_inputs[flag++];
    if (i < scan.num_carry && has_cotangent[i])
      results.push_back(done.carry[next_carry++]);
    else if (!gets)
      results.push_back(Tangent(inputs[i].aval()));
    else if (i < scan.num_carry + scan.num_xs)
      results.push_back(done.ys[next_x++]);
    else
      results.push_back(done.carry[next_sum++]);
  }
  return results;
}

Tangents transpose_scan(std::span<const Tangent> cotangents, std::span<const TransposeInput> inputs,
                        const Params& params) {
  const ScanParams scan(params);
  Flags linear;
  for (const TransposeInput& input : inputs) linear.push_back(input.is_linear());
  while (widen(linear, dependent_outputs(scan.body, linear), scan.num_carry)) {
  }
  const bool all_linear =
      std::all_of(linear.begin(), linear.begin() + std::ptrdiff_t(scan.num_carry),
                  [](bool flag) { return flag; });
  if (!all_linear) return transpose_split(scan, linear, cotangents, inputs);
  // A carry that starts known and becomes linear starts at a value that is added.
  return transpose_linear(scan, linear, cotangents, inputs);
}

Tangents transpose_split(const ScanParams& scan, const Flags& is_linear,
                         std::span<const Tangent> cotangents,
                         std::span<const TransposeInput> inputs) {
  const auto split = split_jaxpr(scan.body, is_linear);
  const std::size_t num_outputs = scan.body->outputs.size();
  Draft known;
  known.reverse = scan.reverse;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_linear[i]) continue;
    (i < scan.num_carry                 ? known.operands.carry
     : i < scan.num_carry + scan.num_xs ? known.operands.xs
                                        : known.operands.consts)
        .push_back(inputs[i].known());
  }
  std::size_t num_known_outputs = 0;
  for (bool rest : split->rest_outputs) num_known_outputs += !rest;
  const Invariants shared =
      eval_invariants(split->known, known.operands.carry.size() + known.operands.xs.size(),
                      num_known_outputs, known.operands.consts);
  known.body = [&](const Parts<std::span<const Array>>& in) -> Parts<Arrays> {
    Arrays arguments;
    for (auto part : {in.carry, in.xs, in.consts})
      arguments.insert(arguments.end(), part.begin(), part.end());
    const Arrays outputs = eval_jaxpr(split->known, arguments);
    Arrays ys;
    for (std::size_t i = 0; i < shared.is_invariant.size(); ++i)
      if (!shared.is_invariant[i]) ys.push_back(outputs[num_known_outputs + i]);
    return {slice(outputs, 0, in.carry.size()), ys, {}};
  };
  const Arrays residuals = bind_scan(scan, known, scan.body->sizes).ys;
  // The rest: linear carries and xs, residuals as known xs, linear consts, what all steps share.
  ScanParams rest = scan;
  Flags rest_linear;
  std::vector<TransposeInput> rest_inputs;
  std::vector<Aval> avals;
  rest.num_carry = rest.num_xs = 0;
  const std::size_t num_flags = scan.flagged ? 1 : 0;
  auto add_linear = [&](std::size_t begin, std::size_t end) {
    std::size_t count = 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (!is_linear[i]) continue;
      rest_linear.push_back(true);
      rest_inputs.push_back(inputs[i]);
      avals.push_back(scan.body->avals[i]);
      ++count;
    }
    return count;
  };
  rest.num_carry = add_linear(0, scan.num_carry);
  for (std::size_t i = 0; i < num_flags; ++i) {  // the flags of a flagged scan stay first
    rest_linear.push_back(false);
    rest_inputs.push_back(inputs[scan.num_carry]);
    avals.push_back(scan.body->avals[scan.num_carry]);
  }
  const std::size_t num_linear_xs = add_linear(scan.num_carry, scan.num_carry + scan.num_xs);
  for (const Array& residual : residuals) {
    rest_linear.push_back(false);
    rest_inputs.push_back(residual);
    avals.push_back(slices_of({residual.aval()})[0]);
  }
  rest.num_xs = num_flags + num_linear_xs + residuals.size();
  const std::size_t num_linear_consts = add_linear(scan.num_carry + scan.num_xs, inputs.size());
  for (const Array& value : shared.values) {
    rest_linear.push_back(false);
    rest_inputs.push_back(value);
    avals.push_back(value.aval());
  }
  rest.body = make_closed_jaxpr(
      [&](std::span<const Array> in) {
        const std::size_t first = rest.num_carry + num_flags + num_linear_xs;
        Arrays arguments = slice(in, 0, rest.num_carry);
        for (std::size_t i = rest.num_carry + num_flags; i < first; ++i) arguments.push_back(in[i]);
        const std::size_t first_const = first + residuals.size();
        for (std::size_t i = 0; i < num_linear_consts; ++i)
          arguments.push_back(in[first_const + i]);
        std::size_t next = first, next_shared = first_const + num_linear_consts;
        for (bool is_shared : shared.is_invariant)
          arguments.push_back(in[is_shared ? next_shared++ : next++]);
        return eval_jaxpr(split->rest, arguments);
      },
      avals, scan.body->sizes);
  Tangents rest_cotangents;
  for (std::size_t i = 0; i < num_outputs; ++i)
    if (split->rest_outputs[i]) rest_cotangents.push_back(cotangents[i]);
  const Tangents of_rest = transpose_linear(rest, rest_linear, rest_cotangents, rest_inputs);
  Tangents results;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!is_linear[i]) {
      results.push_back(Tangent(inputs[i].aval()));
      continue;
    }
    std::size_t place = i < scan.num_carry ? 0 : num_flags;
    for (std::size_t k = 0; k < i; ++k) place += is_linear[k];
    const bool is_const = i >= scan.num_carry + scan.num_xs;
    results.push_back(of_rest[place + (is_const ? residuals.size() : 0)]);
  }
  return results;
}

// --- Batching and masking ------------------------------------------------------------------------

std::vector<Batched> batch_scan(Dim size, std::span<const Batched> inputs, const Params& params) {
  const ScanParams scan(params);
  if (scan.flagged && inputs[scan.num_carry].dim) return bind_lanes(scan_p, size, inputs, params);
  Flags batched;
  for (const Batched& input : inputs) batched.push_back(input.dim.has_value());
  // Slices of xs have the batch first, so that in the xs it is behind the scanned axis.
  auto dims = [&] {
    std::vector<std::optional<int>> dims;
    for (bool flag : batched) dims.push_back(flag ? std::optional<int>(0) : std::nullopt);
    return dims;
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
      operands.push_back(numpy::moveaxis(inputs[i].array, {*inputs[i].dim}, {1}));
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

// The body masked. Where the scanned axis is ragged, steps in its padding leave the carry alone.
Arrays mask_scan(std::span<const Masked> inputs, std::span<const Aval>, const Params& params,
                 const SizeValues& sizes) {
  const ScanParams scan(params);
  const bool is_ragged = scan.length && !(sizes.bound(*scan.length) == *scan.length);
  ScanParams now = scan;
  if (is_ragged) now.length = sizes.bound(*scan.length);
  SizeValues outside = from_outside(sizes);
  outside.checked &= !is_ragged;
  std::vector<Aval> real(scan.body->input_avals().begin(), scan.body->input_avals().end());
  Parts<Arrays> operands;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    (i < scan.num_carry                 ? operands.carry
     : i < scan.num_carry + scan.num_xs ? operands.xs
                                        : operands.consts)
        .push_back(inputs[i].padded);
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
  // Constants are operands already, but the sizes that the body asks for are captured.
  Function step = [&](std::span<const Array> carry_and_xs) {
    Arrays arguments(carry_and_xs.begin(), carry_and_xs.end());
    arguments.insert(arguments.end(), operands.consts.begin(), operands.consts.end());
    return body(arguments);
  };
  const flat::Scanned done = scan_like(now, step, operands.carry, concatenate(steps, operands.xs));
  return concatenate(done.carry, done.ys);
}

const auto linearize_rules = rules<Linearize>().on(scan_p, linearize_scan);
const auto transpose_rules = rules<Transpose>().on(scan_p, transpose_scan);
const auto batch_rules = rules<Batch>().on(scan_p, batch_scan);
const auto mask_rules = rules<Mask>().on(scan_p, mask_scan);

}  // namespace
}  // namespace plait
