// The law of vmap. See laws.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include "laws.h"

namespace plait::laws {
namespace {

using Dims = std::vector<std::optional<int>>;

// Where the batch axis of each mapped input stands: at the same place in all, and at each place of
// one while the others have it last.
std::set<Dims> placements(const Case& one, const std::vector<bool>& mapped) {
  std::set<Dims> all;
  int most = 0;
  for (const Sample::Input& input : one.inputs) most = std::max(most, input.aval.rank());
  auto add = [&](auto&& place) {
    Dims dims(one.inputs.size());
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (mapped[i]) dims[i] = place(i, one.inputs[i].aval.rank());
    all.insert(dims);
  };
  for (int at = 0; at <= most; ++at) {
    add([&](std::size_t, int rank) { return std::min(at, rank); });
    for (std::size_t one_of = 0; one_of < mapped.size(); ++one_of)
      if (mapped[one_of])
        add([&](std::size_t i, int rank) { return i == one_of ? std::min(at, rank) : rank; });
  }
  return all;
}

Verdict batch_is_stack(const Case& one, const Dims& dims, std::int64_t size) {
  Case larger = one;
  flat::VmapOptions options;
  options.in_dims = dims;
  options.size = Dim(size);
  int shift = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!dims[i]) continue;
    larger.inputs[i].aval.shape.insert(*dims[i], size);
    shift += *dims[i];
  }
  const Arrays batched = larger.values();
  auto examples = [&](std::int64_t index) {
    Arrays arrays;
    for (std::size_t i = 0; i < dims.size(); ++i)
      arrays.push_back(dims[i] ? example_of(batched[i], *dims[i], index) : batched[i]);
    return arrays;
  };
  std::vector<int> ranks;
  for (const Array& output : one(examples(0))) ranks.push_back(output.ndim());
  // Over the placements, the results' batch axes take every place too.
  std::vector<int> places;
  for (int rank : ranks) places.push_back((shift + int(size)) % (rank + 1));
  options.out_dims = [&](std::size_t n) {
    Dims result(n);
    for (std::size_t i = 0; i < n; ++i) result[i] = places[i];
    return result;
  };
  const Arrays outputs = flat::vmap(one.function(), batched, options);
  if (outputs.size() != ranks.size())
    return "vmap gives " + std::to_string(outputs.size()) + " results";
  for (std::int64_t index = 0; index < size; ++index) {
    const Arrays expected = one(examples(index));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].ndim() != ranks[i] + 1 || !(outputs[i].shape(places[i]) == Dim(size)))
        return "result " + std::to_string(i) + " is " + outputs[i].aval().to_string() +
               " with a batch of " + std::to_string(size) + " at axis " + std::to_string(places[i]);
      if (auto found = difference(example_of(outputs[i], places[i], index), expected[i]))
        return "example " + std::to_string(index) + " of result " + std::to_string(i) + ": " +
               *found;
    }
  }
  return std::nullopt;
}

std::string text_of(const Dims& dims) {
  std::string text;
  for (const auto& dim : dims)
    text += (text.empty() ? "" : ", ") + (dim ? std::to_string(*dim) : std::string("None"));
  return "(" + text + ")";
}

}  // namespace

Verdict vmap_is_stack(const Case& one) {
  auto check = [&](const Dims& dims, std::int64_t size) -> Verdict {
    try {
      if (auto found = batch_is_stack(one, dims, size))
        return "in_dims " + text_of(dims) + ", batch " + std::to_string(size) + ": " + *found;
    } catch (const Error& error) {
      return "in_dims " + text_of(dims) + ", batch " + std::to_string(size) + ": " + error.what();
    }
    return std::nullopt;
  };
  if (one.inputs.empty()) return check({}, 3);
  for (const std::vector<bool>& mapped : nonempty_subsets(one.inputs.size())) {
    const std::set<Dims> all = placements(one, mapped);
    for (const Dims& dims : all)
      if (auto found = check(dims, 3)) return found;
    if (auto found = check(*all.begin(), 1)) return found;
    if (auto found = check(*all.rbegin(), 1)) return found;
  }
  return std::nullopt;
}

// --- Gradients of batches ------------------------------------------------------------------------

namespace {

constexpr std::int64_t num_examples = 3;

// The gradients of all results with these cotangents, as a function of the inputs.
struct Gradient {
  Function function;
  std::vector<bool> wrt;
  Tangents cotangents;

  Arrays operator()(std::span<const Array> inputs) const {
    Arrays gradients;
    for (const Tangent& tangent : flat::vjp(function, inputs, wrt).pull(cotangents))
      gradients.push_back(tangent.instantiate());
    return gradients;
  }
};

// An array of examples in order, along a new first axis.
Array stack_of(const Arrays& examples) {
  Sizes64 shape = examples[0].shape().to_sizes();
  const Sizes64 one = shape, strides = dense_strides(one);
  shape.insert(0, std::int64_t(examples.size()));
  Buffer stack = Buffer::empty(examples[0].dtype(), shape);
  const std::int64_t bytes = num_elements(one) * size_of(examples[0].dtype());
  for (std::size_t i = 0; i < examples.size(); ++i)
    copy_elements(examples[i].buffer().view(),
                  stack.view_as(one, strides, std::int64_t(i) * bytes).view());
  return Array(stack);
}

double mean_size(const Array& array) {
  double squares = 0;
  const std::vector<complex128> numbers = numbers_of(array);
  for (complex128 number : numbers) squares += std::norm(number);
  return numbers.empty() ? 0 : std::sqrt(squares / double(numbers.size()));
}

Verdict gradients_of_batch(const Case& one, const std::vector<bool>& mapped) {
  std::vector<bool> wrt;
  Case larger = one;
  flat::VmapOptions options;
  for (std::size_t i = 0; i < mapped.size(); ++i) {
    wrt.push_back(is_differentiable(one.inputs[i].aval));
    options.in_dims.push_back(mapped[i] ? std::optional<int>(0) : std::nullopt);
    if (mapped[i]) larger.inputs[i].aval.shape.insert(0, num_examples);
  }
  const Arrays batched = larger.values();
  std::vector<Arrays> examples;
  for (std::int64_t index = 0; index < num_examples; ++index) {
    Arrays arrays;
    for (std::size_t i = 0; i < mapped.size(); ++i)
      arrays.push_back(mapped[i] ? example_of(batched[i], 0, index) : batched[i]);
    examples.push_back(arrays);
  }
  Gradient gradient{one.function(), wrt, {}}, of_batch = gradient;
  bool any = false;
  for (const Array& output : one(examples[0])) {
    const bool has = is_differentiable(output.aval());
    any |= has;
    const Tangent cotangent =
        has ? Tangent(normal_like(output.aval(), 40)) : Tangent(output.aval());
    gradient.cotangents.push_back(cotangent);
    Aval aval = output.aval();
    aval.shape.insert(0, num_examples);
    of_batch.cotangents.push_back(has ? Tangent(stack_of(Arrays(num_examples, cotangent.array())))
                                      : Tangent(aval));
  }
  if (!any) return std::nullopt;

  std::vector<Arrays> expected;  // by input
  for (const Arrays& example : examples) {
    const Arrays gradients = gradient(example);
    expected.resize(gradients.size());
    for (std::size_t i = 0; i < gradients.size(); ++i) expected[i].push_back(gradients[i]);
  }
  const Arrays inside = flat::vmap(gradient, batched, options);
  of_batch.function = [&](std::span<const Array> inputs) {
    return flat::vmap(one.function(), inputs, options);
  };
  const Arrays outside = of_batch(batched);
  std::size_t next = 0;
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    if (!wrt[i]) continue;
    const std::string which = "input " + std::to_string(i);
    const Array all = stack_of(expected[next]);
    // Sums of numbers of this size are rounded.
    const double tolerance = tolerance_of_case({all}, {all}) * std::max(1.0, mean_size(all));
    if (auto found = difference(inside[next], all, tolerance))
      return "vmap of the gradient of " + which + ": " + *found;
    Array sum = expected[next][0];
    for (std::size_t k = 1; k < expected[next].size(); ++k) sum = moved(sum, expected[next][k], 1);
    if (auto found = difference(outside[next], mapped[i] ? all : sum, tolerance))
      return "the gradient of vmap of " + which + ": " + *found;
    ++next;
  }
  return std::nullopt;
}

}  // namespace

Verdict gradient_of_vmap_is_stack(const Case& one) {
  const std::size_t n = one.inputs.size();
  bool any = false;
  for (const Sample::Input& input : one.inputs) any |= is_differentiable(input.aval);
  if (!any) return std::nullopt;
  std::vector<std::vector<bool>> choices{std::vector<bool>(n, true)};
  for (std::size_t i = 0; n > 1 && i < n; ++i) {  // one of them is shared
    choices.push_back(std::vector<bool>(n, true));
    choices.back()[i] = false;
  }
  for (const std::vector<bool>& mapped : choices)
    if (auto found = gradients_of_batch(one, mapped)) {
      std::string text;
      for (bool flag : mapped) text += flag ? " mapped" : " shared";
      return "inputs" + text + ": " + *found;
    }
  return std::nullopt;
}

}  // namespace plait::laws
