// Lanes as parameters of an equation: "lanes", how many examples each has, outermost first, and
// "batched", for each lane 1 for each operand that has one for each example.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/sizes.h>

namespace plait {

inline void add_lanes(std::vector<Params::Entry>& entries, std::span<const Lane> lanes) {
  Shape sizes, batched;
  for (const Lane& lane : lanes) {
    sizes.push_back(lane.size);
    for (bool flag : lane.batched) batched.push_back(flag ? 1 : 0);
  }
  entries.emplace_back("lanes", sizes);
  entries.emplace_back("batched", batched);
}

inline std::vector<Lane> lanes_of(const Params& params, std::size_t num_operands,
                                  const char* name) {
  const std::vector<int> batched = params.ints("batched");
  const Shape& sizes = params.get<Shape>("lanes");
  if (batched.size() != sizes.size() * num_operands)
    throw InternalError(std::string(name) +
                        ": the parameters do not fit each other: " + params.to_string());
  std::vector<Lane> lanes;
  auto flag = batched.begin();
  for (Dim size : sizes) {
    lanes.push_back({size, std::vector<bool>(flag, flag + std::ptrdiff_t(num_operands))});
    flag += std::ptrdiff_t(num_operands);
  }
  return lanes;
}

}  // namespace plait
