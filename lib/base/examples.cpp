// See examples.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/examples.h>

namespace plait {
namespace {

thread_local const ExampleScope* innermost_example = nullptr;

}  // namespace

ExampleScope::ExampleScope(const std::vector<std::int32_t>* rows,
                           std::span<const std::int64_t> sizes)
    : rows_(rows), sizes_(sizes), outer_(innermost_example) {
  innermost_example = this;
}

ExampleScope::~ExampleScope() { innermost_example = outer_; }

std::vector<std::int64_t> ExampleScope::numbers_of(std::span<const std::int64_t> place) {
  std::vector<std::int64_t> numbers(place.begin(), place.end());
  for (const ExampleScope* scope = innermost_example; scope && !numbers.empty();
       scope = scope->outer_) {
    std::int64_t number = scope->rows_ ? (*scope->rows_)[std::size_t(numbers[0])] : numbers[0];
    numbers.erase(numbers.begin());
    for (std::size_t axis = scope->sizes_.size(); axis-- > 0; number /= scope->sizes_[axis])
      numbers.insert(numbers.begin(), number % scope->sizes_[axis]);
  }
  return numbers;
}

}  // namespace plait
