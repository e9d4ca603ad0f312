// The law of effects. See laws.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "laws.h"

namespace plait::laws {
namespace {

// Examples that all take different ways: those that take the branch, and how many steps each takes.
const bool takes[] = {true, false, true, false};
const int steps[] = {2, 0, 1, 3};
constexpr std::size_t num_examples = 4;

// Applies the case in a branch, and in each step of a loop.
Arrays apply_where_wanted(const Case& one, std::span<const Array> operands) {
  const Array taken = operands[0], count = operands[1];
  const std::span<const Array> inputs = operands.subspan(2);
  const Function happens = [&](std::span<const Array> x) { return one(x); };
  const Function does_not = [&](std::span<const Array>) {
    Arrays zeros;
    for (const Aval& aval : make_jaxpr(one.function(), one.avals()).jaxpr->output_avals())
      zeros.push_back(lax::zeros_like(aval));
    return zeros;
  };
  Arrays results = flat::cond(taken, {does_not, happens}, inputs);
  const Arrays last = flat::while_loop(
      [&](std::span<const Array> now) -> Arrays { return {lax::lt(now[0], count)}; },
      [&](std::span<const Array> now) -> Arrays {
        one(inputs);
        return {now[0] + Array::literal(1, DType::int32)};
      },
      Arrays{Array::literal(0, DType::int32)});
  results.push_back(last[0]);
  return results;
}

}  // namespace

Verdict effects_are_of_live_examples(const Case& one) {
  if (!one.primitive || !one.primitive->is_effectful() || !one.params.has("function"))
    return std::nullopt;
  // The case with a function that notes what it was called with.
  std::vector<double> seen;
  const auto& right = one.params.get<Callable>("function").as<Function>();
  const auto noted = std::make_shared<Function>([&](std::span<const Array> inputs) {
    const std::vector<complex128> numbers = numbers_of(inputs[0]);
    const std::size_t each = std::size_t(one.inputs[0].aval.shape.num_elements().constant());
    for (std::size_t i = 0; i < numbers.size(); i += each) seen.push_back(numbers[i].real());
    return right(inputs);
  });
  Case watched = one;
  watched.params = one.params.with("function", Callable("noted", noted));
  Case larger = one;
  for (Sample::Input& input : larger.inputs) input.aval.shape.insert(0, num_examples);
  const Arrays batched = larger.values();
  const Function function = [&](std::span<const Array> operands) {
    return apply_where_wanted(watched, operands);
  };
  std::vector<double> expected;
  Buffer taken = Buffer::empty(DType::bool_, {num_examples}),
         count = Buffer::empty(DType::int32, {num_examples});
  for (std::size_t i = 0; i < num_examples; ++i) {
    static_cast<bool*>(taken.mutable_data())[i] = takes[i];
    static_cast<std::int32_t*>(count.mutable_data())[i] = steps[i];
    const double number = numbers_of(example_of(batched[0], 0, std::int64_t(i)))[0].real();
    expected.insert(expected.end(), std::size_t(steps[i] + takes[i]), number);
  }
  Arrays operands{Array(taken), Array(count)};
  operands.insert(operands.end(), batched.begin(), batched.end());
  flat::VmapOptions options;
  options.in_dims.assign(operands.size(), 0);
  const Function mapped = [&](std::span<const Array> x) {
    return flat::vmap(function, x, options);
  };
  std::sort(expected.begin(), expected.end());
  for (const bool jitted : {false, true}) {
    seen.clear();
    if (jitted)
      flat::Jit(mapped, "f")(operands);
    else
      mapped(operands);
    std::sort(seen.begin(), seen.end());
    if (seen != expected)
      return std::string(jitted ? "under jit it" : "it") + " happened " +
             std::to_string(seen.size()) + " times where " + std::to_string(expected.size()) +
             " are right, or for other examples";
  }
  return std::nullopt;
}

}  // namespace plait::laws
