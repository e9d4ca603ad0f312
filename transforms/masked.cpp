// masked: the primitive that applies a function over named sizes to padded arrays. mask.cpp makes
// it. Derivatives and batches rewrite its body and lanes, so that they never meet padding. Its
// decomposition (masked_program.cpp) comes last, and applies the Mask rule of every equation of the
// body.
//
// NOTE: [padding comes last] A rule that fills padding before differentiation would send a zero
// cotangent through exp(NaN), and NaN to real gradients. So Linearize, Transpose and Batch give
// `masked` equations again. A vmap becomes a lane of the equation, which decomposes to a vmap of
// the padded program.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/primitives/stacks.h>
#include <plait/rules/diverge.h>
#include <plait/rules/guard.h>
#include <plait/rules/prune.h>
#include <plait/rules/speculate.h>
#include <plait/rules/steps.h>
#include <plait/transforms/laned.h>

namespace plait {

// --- Parameters ----------------------------------------------------------------------------------

MaskedParams::MaskedParams(const Params& params)
    : body(params.get<Jaxpr>("body")),
      bounds(params.get<Shape>("bounds")),
      checked(params.flag("checked")),
      from_data(params.has("from_data") && params.flag("from_data")) {
  if (params.has("sizes")) sizes = params.get<Shape>("sizes");
  if (sizes.size() + bounds.size() != body->sizes.size())
    throw InternalError("masked: the parameters do not fit each other: " + params.to_string());
  ragged.assign(body->sizes.end() - bounds.size(), body->sizes.end());
  if (params.has("lanes"))
    lanes = lanes_of(params, num_ragged() + body->num_binders, body->outputs.size(), "masked");
}

Params MaskedParams::to_params() const {
  std::vector<Params::Entry> entries{{"body", body}, {"bounds", bounds}, {"checked", checked}};
  if (!sizes.empty()) entries.emplace_back("sizes", sizes);
  if (from_data) entries.emplace_back("from_data", true);
  if (!lanes.empty()) add_lanes(entries, lanes, body->outputs.size());
  return Params(std::move(entries));
}

std::vector<std::pair<Dim, Dim>> MaskedParams::opening() const {
  std::vector<std::pair<Dim, Dim>> result;
  for (std::size_t i = 0; i < sizes.size(); ++i) result.emplace_back(body->sizes[i], sizes[i]);
  std::vector<Dim> taken;
  collect_sizes(sizes, taken);
  collect_sizes(bounds, taken);
  for (Dim size : ragged) {
    result.emplace_back(size, fresh_size(size, taken));
    taken.push_back(result.back().second);
  }
  return result;
}

Jaxpr MaskedParams::open_body() const {
  const std::vector<std::pair<Dim, Dim>> replacements = opening();
  const bool same = std::all_of(replacements.begin(), replacements.end(),
                                [](const auto& pair) { return pair.first == pair.second; });
  return same ? body : instantiate(body, replacements);
}

std::vector<std::pair<Dim, Dim>> MaskedParams::open_bounds() const {
  const std::vector<std::pair<Dim, Dim>> replacements = opening();
  std::vector<std::pair<Dim, Dim>> result;
  for (std::size_t i = 0; i < bounds.size(); ++i)
    result.emplace_back(replacements[sizes.size() + i].second, bounds[i]);
  return result;
}

Aval MaskedParams::padded(const Aval& real) const {
  if (real.shape.is_constant()) return real;
  const std::vector<std::pair<Dim, Dim>> replacements = opening(), limits = open_bounds();
  Aval aval = real;
  for (Dim& dim : aval.shape) dim = largest(dim.substitute(replacements), limits);
  return aval;
}

namespace {

// --- One example ---------------------------------------------------------------------------------

// Slices off the padding of an array, or of each element of a stack.
Array without_padding(const Array& array, const Shape& real) {
  if (array.shape() == real) return array;
  if (array.aval().stack > 0)
    return map_stacks(std::span(&array, 1), [&](std::span<const Array> element) {
      return without_padding(element[0], real);
    });
  return lax::slice(array, Shape(array.ndim(), Dim(0)), real);
}

// Visits the body at the real sizes of one example, on arrays without padding.
void visit_masked(std::span<const Array> inputs, const Params& params,
                  std::span<const std::int64_t> element, const Steps::Visit& visit) {
  const MaskedParams masked(params);
  const Arrays example = example_of(masked.lanes, element, inputs);
  const std::vector<std::pair<Dim, Dim>> ragged = masked.open_bounds();
  std::vector<std::pair<Dim, Dim>> sizes;
  std::string text;
  for (std::size_t i = 0; i < ragged.size(); ++i) {
    sizes.emplace_back(ragged[i].first, Dim(example[i].item<std::int64_t>()));
    text += (i ? ", " : "") + std::string(masked.ragged[i].name()) + " = " +
            sizes.back().second.to_string();
  }
  const Jaxpr body = instantiate(masked.open_body(), sizes);
  Arrays real;
  for (int i = 0; i < body->num_binders; ++i)
    real.push_back(without_padding(example[ragged.size() + std::size_t(i)], body->avals[i].shape));
  if (!masked.lanes.empty()) text += ", " + example_text(masked.lanes, element);
  visit({body, real, "mask", text});
}

// --- Decomposition -------------------------------------------------------------------------------

Arrays decompose_masked(std::span<const Array> inputs, const Params& params) {
  const Jaxpr& body = params.get<Jaxpr>("body");
  struct Padded {
    using Result = Jaxpr;
    Params without_body;
    bool operator==(const Padded&) const = default;
  };
  const Jaxpr program = *body->memo.get(Padded{params.without("body")},
                                        [&] { return padded_program(MaskedParams(params)); });
  return flat::call(program, inputs, "masked");
}

// --- Rewriting the body --------------------------------------------------------------------------

Differentiated linearize_masked(std::span<const Array> primals, std::span<const Tangent> tangents,
                                const Params& params, Trace* linear) {
  return linearize_laned(masked_p, MaskedParams(params), primals, tangents, linear);
}

Tangents transpose_masked(std::span<const Tangent> cotangents,
                          std::span<const TransposeInput> inputs, const Params& params) {
  return transpose_laned(masked_p, MaskedParams(params), cotangents, inputs);
}

std::vector<Batched> batch_masked(Dim size, std::span<const Batched> inputs, const Params& params) {
  return batch_laned(masked_p, MaskedParams(params), size, inputs);
}

// --- Masking what is masked ----------------------------------------------------------------------

// The array at other sizes: sliced at the end, or padded there with zeros.
Array resized(const Array& array, const Shape& shape) {
  Shape least = array.shape();
  std::vector<lax::Padding> padding(array.ndim());
  for (int i = 0; i < array.ndim(); ++i) {
    least[i] = minimum(shape[i], array.shape(i));
    padding[i].high = shape[i] - least[i];
  }
  const Array cut = lax::slice(array, Shape(array.ndim(), Dim(0)), least);
  return lax::pad(cut, Array::literal(0, array.dtype()), padding);
}

// Which examples of lanes are real and not padding: a bool with an axis for each padded lane.
struct RealExamples {
  Array real;
  std::vector<bool> lanes;  // by lane: whether it has an axis
};
std::optional<RealExamples> real_examples(std::span<const Lane> lanes, const SizeValues& sizes) {
  RealExamples result;
  Shape real;
  for (const Lane& lane : lanes) {
    result.lanes.push_back(!(sizes.bound(lane.size) == lane.size));
    if (result.lanes.back()) real.push_back(lane.size);
  }
  const std::optional<Array> valid = validity(real, sizes);
  if (!valid) return std::nullopt;
  result.real = *valid;
  return result;
}

// Padded examples raise nothing and have no effects.
void guard_padded_lanes(MaskedParams& masked, Arrays& operands, const RealExamples& examples) {
  masked.body = guarded_body(masked.body);
  operands.push_back(examples.real);
  for (std::size_t lane = 0; lane < masked.lanes.size(); ++lane)
    masked.lanes[lane].batched.push_back(examples.lanes[lane]);
}

// An output with every lane, summed over the lanes that sum it. Padded examples add nothing.
Array sum_of_real(const Array& output, const Aval& sum, std::span<const Lane> lanes,
                  std::size_t index, const SizeValues& sizes) {
  std::vector<int> axes;
  Aval real = sum;
  for (int lane = 0; lane < int(lanes.size()); ++lane)
    if (lanes[lane].sums(index)) {
      axes.push_back(lane);
      real.shape.insert(lane, lanes[lane].size);
    }
  if (axes.empty()) return output;
  const Array zero = Array::literal(Literal{sum.dtype, sum.weak, 0, 0, 0});
  return lax::reduce_sum(fill_padding({output, real}, zero, sizes), axes);
}

// A masked function in a masked function: sizes that are ragged in the outer one become ragged
// sizes of the inner one. Padded examples of a lane have sizes of 0.
Arrays mask_masked(std::span<const Masked> inputs, std::span<const Aval> outputs,
                   const Params& params, const SizeValues& sizes) {
  const MaskedParams inner(params);
  MaskedParams masked = inner;
  std::vector<Dim> names, ragged;
  Shape bounds;
  Arrays operands;
  masked.sizes.clear();
  masked.checked &= sizes.checked;
  for (std::size_t i = 0; i < inner.sizes.size(); ++i) {
    const Dim value = inner.sizes[i], bound = sizes.bound(value), name = inner.body->sizes[i];
    if (bound == value) {
      names.push_back(name);
      masked.sizes.push_back(value);
    } else {
      ragged.push_back(name);
      bounds.push_back(bound);
      operands.push_back(sizes.value(value));
    }
  }
  bool pads_lanes = false;
  for (Lane& lane : masked.lanes) {
    const Dim bound = sizes.bound(lane.size);
    pads_lanes |= !(bound == lane.size);
    lane.size = bound;
    lane.batched.insert(lane.batched.begin(), ragged.size(), false);
  }
  if (pads_lanes)  // padded examples take no part in sums
    for (Lane& lane : masked.lanes) lane.summed.clear();
  ragged.insert(ragged.end(), inner.ragged.begin(), inner.ragged.end());
  names.insert(names.end(), ragged.begin(), ragged.end());
  for (Dim bound : inner.bounds) bounds.push_back(sizes.bound(bound));
  masked.body = with_sizes(inner.body, names);
  masked.ragged = ragged;
  masked.bounds = bounds;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Shape shape;
    if (i >= inner.num_ragged())
      shape = masked.padded(inner.body->avals[i - inner.num_ragged()]).shape;
    for (std::size_t lane = masked.lanes.size(); lane-- > 0;)
      if (inner.lanes[lane].batched[i]) shape.insert(0, masked.lanes[lane].size);
    const bool is_size = i < inner.num_ragged() && pads_lanes;
    const Array operand = is_size ? fill_padding(inputs[i], Array::literal(0, DType::int32), sizes)
                                  : inputs[i].padded;
    operands.push_back(resized(operand, shape));
  }
  if (pads_lanes) masked.checked &= inner.body->constraints.empty();  // sizes of 0 may violate them
  if (needs_guard(masked.body))
    if (const std::optional<RealExamples> examples = real_examples(inner.lanes, sizes))
      guard_padded_lanes(masked, operands, *examples);
  Arrays results = bind(masked_p, operands, masked.to_params());
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (pads_lanes) results[i] = sum_of_real(results[i], outputs[i], inner.lanes, i, sizes);
    Shape shape;
    for (Dim dim : outputs[i].shape) shape.push_back(sizes.bound(dim));
    results[i] = resized(results[i], shape);
  }
  return results;
}

}  // namespace

constinit const Primitive masked_p{"masked"};
static const auto masked_def =
    define(masked_p,
           "Applies a function of named sizes to padded arrays and the sizes' values; the padding "
           "of results is zero.")
        .family(holds_programs())
        .refuse<Prune>("its body is padded, and summed over examples, as a whole")
        .refuse<Diverge>("its examples differ in size, and all go one way")
        .rule<Steps>(visit_masked)
        .rule<Bodies>([](const Params& params) {  // at sizes up to the bounds
          const MaskedParams masked(params);
          const Jaxpr body = masked.open_body();
          return std::vector<Body>{{body, Body::Runs::per_example, num_examples_of(masked.lanes),
                                    false, operands_from(int(masked.num_ragged()), body),
                                    masked.open_bounds()}};
        })
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const MaskedParams masked(params);
          const std::size_t num_ragged = masked.num_ragged();
          if (inputs.size() != num_ragged + masked.body->num_binders)
            throw InternalError("masked: " + std::to_string(inputs.size()) + " operands for " +
                                std::to_string(num_ragged) + " sizes and a body of " +
                                std::to_string(masked.body->num_binders));
          for (std::size_t i = 0; i < inputs.size(); ++i) {
            Aval expected = i < num_ragged ? Aval{{}, DType::int32}
                                           : masked.padded(masked.body->avals[i - num_ragged]);
            for (auto lane = masked.lanes.rbegin(); lane != masked.lanes.rend(); ++lane)
              if (lane->batched[i]) expected.shape.insert(0, lane->size);
            if (!(inputs[i].shape == expected.shape) || inputs[i].dtype != expected.dtype)
              throw InternalError("masked: operand " + std::to_string(i) + " is " +
                                  inputs[i].to_string() + " where " + expected.to_string() +
                                  " is needed\n" + print(masked.body));
          }
          MeshAxes varying;
          for (const Aval& input : inputs) varying |= input.varying;
          std::vector<Aval> outputs;
          for (const Aval& real : masked.body->output_avals()) {
            const std::size_t i = outputs.size();
            outputs.push_back(masked.padded(real));
            outputs.back().varying |= varying;
            for (auto lane = masked.lanes.rbegin(); lane != masked.lanes.rend(); ++lane)
              if (!lane->sums(i)) outputs.back().shape.insert(0, lane->size);
          }
          return outputs;
        })
        .rule<Decompose>(decompose_masked)
        .rule<Linearize>(linearize_masked)
        .rule<Transpose>(transpose_masked)
        .rule<Batch>(batch_masked)
        .rule<Mask>(mask_masked)
        .rule<Samples>([] {
          Builder builder;  // sin(x) summed over n, times y
          const Dim n = Dim::size("n");
          const Var x = builder.add_binder({{n, 3}, DType::float64});
          const Var y = builder.add_binder({{3}, DType::float64});
          const Var sine = builder.add(sin_p, {x}, {}, {})[0];
          const Var sum = builder.add(reduce_p, {sine},
                                      {{"kind", std::string("sum")}, {"axes", Shape{0}}}, {})[0];
          const Var product = builder.add(mul_p, {sum, y}, {}, {})[0];
          const Jaxpr body = builder.close({product, sine}, {n});
          const Sample::Input size{{{}, DType::int32}, Sample::Input::Values::indices, 5};
          return std::vector<Sample>{{{size, {{{4, 3}, DType::float64}}, {{{3}, DType::float64}}},
                                      {{"body", body}, {"bounds", Shape{4}}, {"checked", true}}}};
        });

}  // namespace plait
