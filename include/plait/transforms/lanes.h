// Lanes: the batch axes of `masked` equations, and of control flow whose examples take different
// ways.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/sizes.h>

namespace plait {

// A vmap around a `masked` or `lanes` equation: the number of examples, and which operands are
// batched. Their batch axes come first, outermost lane first. Results have every lane, except those
// that are summed over the examples: the cotangents of unbatched operands.
struct Lane {
  Dim size;
  std::vector<bool> batched;
  std::vector<bool> summed = {};  // by output; empty: none
  bool sums(std::size_t output) const { return output < summed.size() && summed[output]; }
  bool sums_any() const { return std::find(summed.begin(), summed.end(), true) != summed.end(); }
};

// Lanes as parameters of an equation. "lanes" is the number of examples of each, outermost first.
// "batched" has for each lane 1 for each operand that is batched. "summed", if present, has for
// each lane 1 for each output that is summed over the examples.
inline Dim num_examples_of(std::span<const Lane> lanes) {
  Dim count = 1;
  for (const Lane& lane : lanes) count = count * lane.size;
  return count;
}

inline void add_lanes(std::vector<Params::Entry>& entries, std::span<const Lane> lanes,
                      std::size_t num_outputs) {
  Shape sizes, batched;
  for (const Lane& lane : lanes) {
    sizes.push_back(lane.size);
    for (bool flag : lane.batched) batched.push_back(flag ? 1 : 0);
  }
  entries.emplace_back("lanes", sizes);
  entries.emplace_back("batched", batched);
  if (std::none_of(lanes.begin(), lanes.end(), [](const Lane& lane) { return lane.sums_any(); }))
    return;
  Shape summed;
  for (const Lane& lane : lanes)
    for (std::size_t i = 0; i < num_outputs; ++i) summed.push_back(lane.sums(i) ? 1 : 0);
  entries.emplace_back("summed", summed);
}

inline std::vector<Lane> lanes_of(const Params& params, std::size_t num_operands,
                                  std::size_t num_outputs, const char* name) {
  const std::vector<int> batched = params.ints("batched");
  const std::vector<int> summed = params.has("summed") ? params.ints("summed") : std::vector<int>();
  const Shape& sizes = params.get<Shape>("lanes");
  if (batched.size() != sizes.size() * num_operands ||
      (!summed.empty() && summed.size() != sizes.size() * num_outputs))
    throw InternalError(std::string(name) +
                        ": the parameters do not fit each other: " + params.to_string());
  std::vector<Lane> lanes;
  auto flag = batched.begin();
  auto sum = summed.begin();
  for (Dim size : sizes) {
    lanes.push_back({size, std::vector<bool>(flag, flag + std::ptrdiff_t(num_operands))});
    flag += std::ptrdiff_t(num_operands);
    if (summed.empty()) continue;
    lanes.back().summed.assign(sum, sum + std::ptrdiff_t(num_outputs));
    sum += std::ptrdiff_t(num_outputs);
  }
  return lanes;
}

// The operands of one example, by its number in each lane, and which one it is in words.
Arrays example_of(std::span<const Lane> lanes, std::span<const std::int64_t> numbers,
                  std::span<const Array> inputs);
std::string example_text(std::span<const Lane> lanes, std::span<const std::int64_t> numbers);

}  // namespace plait
