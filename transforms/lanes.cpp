// See lanes.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>
#include <plait/primitives/stacks.h>
#include <plait/transforms/lanes.h>

namespace plait {
namespace {

// One example of an array, or of each element of a stack.
Array example_at(const Array& array, std::int64_t index) {
  if (array.aval().stack > 0)
    return map_stacks(std::span(&array, 1), [&](std::span<const Array> element) {
      return example_at(element[0], index);
    });
  Shape start(array.ndim(), Dim(0)), limit = array.shape(), shape = limit;
  start[0] = index;
  limit[0] = index + 1;
  shape.erase(0);
  return lax::reshape(lax::slice(array, start, limit), shape);
}

}  // namespace

Arrays example_of(std::span<const Lane> lanes, std::span<const std::int64_t> numbers,
                  std::span<const Array> inputs) {
  Arrays example(inputs.begin(), inputs.end());
  for (std::size_t lane = 0; lane < lanes.size(); ++lane)
    for (std::size_t i = 0; i < example.size(); ++i)
      if (lanes[lane].batched[i]) example[i] = example_at(example[i], numbers[lane]);
  return example;
}

std::string example_text(std::span<const Lane> lanes, std::span<const std::int64_t> numbers) {
  std::string text;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane)
    text += (lane ? ", " : "") + std::to_string(numbers[lane]);
  return "example " + (lanes.size() > 1 ? "(" + text + ")" : text);
}

}  // namespace plait
