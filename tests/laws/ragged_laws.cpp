// Laws of ragged batches and of batches in chunks. See laws.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "laws.h"

namespace plait::laws {
namespace {

using Extents = std::vector<std::pair<Dim, Dim>>;

Array stacked(const Arrays& examples) {
  Sizes64 shape = examples[0].shape().to_sizes();
  const std::int64_t bytes = num_elements(shape) * size_of(examples[0].dtype());
  const Sizes64 strides = dense_strides(shape), one = shape;
  shape.insert(0, std::int64_t(examples.size()));
  Buffer buffer = Buffer::empty(examples[0].dtype(), shape);
  for (std::size_t i = 0; i < examples.size(); ++i)
    if (bytes > 0)
      copy_elements(examples[i].buffer().view(),
                    buffer.view_as(one, strides, std::int64_t(i) * bytes).view());
  return Array(buffer);
}

flat::VmapOptions along_first(std::size_t count) {
  flat::VmapOptions options;
  options.in_dims.assign(count, 0);
  options.out_dims = [](std::size_t outputs) {
    return std::vector<std::optional<int>>(outputs, 0);
  };
  return options;
}

// --- Ragged --------------------------------------------------------------------------------------

// One example of a ragged batch: its sizes, its real arrays, and what the function gives for them.
struct Example {
  Case real;
  Arrays sizes, values, expected;
};

// The example of these sizes; nothing where the function is not defined at them.
std::optional<Example> example_at(const Case& one, const Renaming& renaming, const Extents& extents,
                                  unsigned seed) {
  Example example{one, {}, {}, {}};
  example.real.params = substitute(renaming.params, extents);
  for (std::size_t i = 0; i < one.inputs.size(); ++i)
    example.real.inputs[i].aval.shape = substitute(renaming.avals[i].shape, extents);
  for (const auto& [size, extent] : extents)
    example.sizes.push_back(Array(Buffer::scalar(std::int32_t(extent.constant()))));
  try {
    example.values = example.real.values(seed);
    example.expected = example.real(example.values);
    return example;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Sizes from 0 to the bounds.
std::vector<Example> examples_of(const Case& one, const Renaming& renaming, const Extents& bounds) {
  Extents none = renaming.extents, less = renaming.extents;
  for (auto& [size, extent] : none) extent = 0;
  for (auto& [size, extent] : less) extent = extent - Dim(1);
  std::vector<Example> examples;
  unsigned seed = 1;
  std::vector<Extents> trials = {renaming.extents, bounds};
  // The sample's indices keep a promise at its own sizes alone.
  const ParamValue* mode = one.params.find("mode");
  if (!mode || std::get<std::string>(*mode) != "promise")
    trials.insert(trials.begin() + 1, {none, less});
  for (const Extents& extents : trials)
    if (std::optional<Example> example = example_at(one, renaming, extents, seed++))
      examples.push_back(std::move(*example));
  return examples;
}

// The vjp of a function as a function of its inputs, then the cotangents of its differentiable
// outputs.
Function pullback_of(const Function& f, std::size_t num_inputs, const std::vector<bool>& wrt) {
  return [=](std::span<const Array> operands) {
    const flat::Pullback pullback = flat::vjp(f, operands.first(num_inputs), wrt);
    Tangents cotangents;
    std::size_t next = num_inputs;
    for (const Array& output : pullback.outputs)
      cotangents.push_back(is_differentiable(output.aval()) ? Tangent(operands[next++])
                                                            : Tangent(output.aval()));
    Arrays results;
    for (const Tangent& tangent : pullback.pull(cotangents))
      results.push_back(tangent.instantiate());
    return results;
  };
}

Verdict examples_agree(const std::vector<Example>& examples, const Arrays& batch,
                       const std::vector<Arrays>& expected, const std::string& what) {
  for (std::size_t k = 0; k < examples.size(); ++k)
    for (std::size_t i = 0; i < expected[k].size(); ++i) {
      const double tolerance = tolerance_of_case(examples[k].values, expected[k]);
      const Array one = example_of(batch.at(i), 0, std::int64_t(k));
      if (auto found = real_part_and_zeros(
              one, expected[k][i],
              what + " " + std::to_string(i) + " of example " + std::to_string(k), tolerance))
        return found;
    }
  return std::nullopt;
}

Verdict ragged_at(const Case& one, const Renaming& renaming, std::int64_t padding) {
  Extents bounds = renaming.extents;
  for (auto& [size, extent] : bounds) extent = extent + Dim(padding);
  const std::vector<Example> examples = examples_of(one, renaming, bounds);
  if (examples.empty()) return "no example is defined";
  const std::size_t num_sizes = bounds.size(), num_inputs = one.inputs.size();
  std::vector<Arrays> columns(num_sizes + num_inputs);  // by operand, then example
  for (const Example& example : examples) {
    for (std::size_t i = 0; i < num_sizes; ++i) columns[i].push_back(example.sizes[i]);
    for (std::size_t i = 0; i < num_inputs; ++i)
      columns[num_sizes + i].push_back(
          padded_to(example.values[i], substitute(renaming.avals[i].shape, bounds).to_sizes()));
  }
  Arrays operands;
  for (const Arrays& column : columns) operands.push_back(stacked(column));

  int traces = 0;
  const Function body = [&](std::span<const Array> inputs) {
    return ++traces, one.apply(inputs, renaming.params);
  };
  const Function masked = [&](std::span<const Array> inputs) {
    flat::MaskOptions options;
    for (std::size_t i = 0; i < num_sizes; ++i)
      options.sizes.emplace(std::string(bounds[i].first.name()), inputs[i]);
    for (const Aval& aval : renaming.avals) options.in_shapes.push_back(Spec(aval));
    return flat::mask(body, inputs.subspan(num_sizes), options);
  };
  const Function batch = [&](std::span<const Array> inputs) {
    return flat::vmap(masked, inputs, along_first(inputs.size()));
  };
  const Arrays outputs = batch(operands);
  std::vector<Arrays> expected;
  for (const Example& example : examples) expected.push_back(example.expected);
  if (auto found = examples_agree(examples, outputs, expected, "result")) return found;
  const flat::Jit jitted(batch, "batch");
  if (auto found = difference_in_bits(jitted(operands), outputs)) return "under jit: " + *found;
  // The same lengths in another order: no new program.
  const int before = traces;
  Arrays turned = operands;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    std::reverse(columns[i].begin(), columns[i].end());
    turned[i] = stacked(columns[i]);
  }
  jitted(turned);
  if (traces != before) return "jit traced the function again for other sizes";

  std::vector<bool> wrt(num_sizes, false), real_wrt;
  for (const Aval& aval : renaming.avals)
    real_wrt.push_back(is_differentiated(one) && is_differentiable(aval));
  if (std::find(real_wrt.begin(), real_wrt.end(), true) == real_wrt.end()) return std::nullopt;
  wrt.insert(wrt.end(), real_wrt.begin(), real_wrt.end());
  std::vector<Arrays> gradients;
  std::vector<Arrays> cotangents;  // by output, then example
  for (std::size_t k = 0; k < examples.size(); ++k) {
    Arrays arguments = examples[k].values;
    std::size_t next = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Aval& aval = examples[k].expected[i].aval();
      if (!is_differentiable(aval)) continue;
      arguments.push_back(normal_like(aval, 40 + unsigned(i + 7 * k)));
      if (k == 0) cotangents.emplace_back();
      Sizes64 shape = outputs[i].shape().to_sizes();
      shape.erase(0);
      cotangents[next++].push_back(padded_to(arguments.back(), shape));
    }
    gradients.push_back(pullback_of(examples[k].real.function(), num_inputs, real_wrt)(arguments));
  }
  for (const Arrays& column : cotangents) operands.push_back(stacked(column));
  const Function pull = pullback_of(masked, num_sizes + num_inputs, wrt);
  const Arrays given = flat::vmap(pull, operands, along_first(operands.size()));
  return examples_agree(examples, given, gradients, "gradient");
}

}  // namespace

Verdict ragged_batch_is_loop(const Case& one) {
  for (const Renaming& renaming : renamings_of(one)) {
    try {
      if (auto found = ragged_at(one, renaming, 2)) return text_of(renaming) + ": " + *found;
    } catch (const Error& error) {
      return text_of(renaming) + ": " + error.what();
    }
  }
  return std::nullopt;
}

Verdict chunks_are_vmap(const Case& one) {
  if (one.inputs.empty()) return std::nullopt;
  Arrays operands;
  std::vector<Arrays> examples;
  for (unsigned k = 0; k < 5; ++k) examples.push_back(one.values(11 + k));
  for (std::size_t i = 0; i < one.inputs.size(); ++i) {
    Arrays column;
    for (const Arrays& example : examples) column.push_back(example[i]);
    operands.push_back(stacked(column));
  }
  flat::VmapOptions options = along_first(operands.size());
  const Arrays whole = flat::vmap(one.function(), operands, options);
  for (std::int64_t chunk : {1, 2, 5, 8}) {
    options.chunk = chunk;
    if (auto found = difference(flat::vmap(one.function(), operands, options), whole))
      return "chunks of " + std::to_string(chunk) + ": " + *found;
  }
  return std::nullopt;
}

}  // namespace plait::laws
