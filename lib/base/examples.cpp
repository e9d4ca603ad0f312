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

SavedExamples SavedExamples::of_this_thread() {
  SavedExamples saved;
  for (const ExampleScope* scope = innermost_example; scope; scope = scope->outer_)
    saved.scopes_.push_back({scope->rows_ != nullptr,
                             scope->rows_ ? *scope->rows_ : std::vector<std::int32_t>(),
                             {scope->sizes_.begin(), scope->sizes_.end()}});
  return saved;
}

ExamplesAgain::ExamplesAgain(const SavedExamples& saved) : here_(innermost_example) {
  innermost_example = nullptr;
  for (auto scope = saved.scopes_.rbegin(); scope != saved.scopes_.rend(); ++scope)
    scopes_.push_back(
        std::make_unique<ExampleScope>(scope->has_rows ? &scope->rows : nullptr, scope->sizes));
}

ExamplesAgain::~ExamplesAgain() {
  while (!scopes_.empty()) scopes_.pop_back();
  innermost_example = here_;
}

}  // namespace plait
