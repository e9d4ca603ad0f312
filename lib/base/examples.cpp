// See examples.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/error.h>
#include <plait/base/examples.h>

#include "base/applying.h"

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

SavedScopes SavedScopes::of_this_thread() {
  SavedScopes saved;
  for (const ExampleScope* scope = innermost_example; scope; scope = scope->outer_)
    saved.examples_.push_back({scope->rows_ != nullptr,
                               scope->rows_ ? *scope->rows_ : std::vector<std::int32_t>(),
                               {scope->sizes_.begin(), scope->sizes_.end()}});
  saved.transforms_ = TransformScope::current();
  saved.line_ = Source::current();
  return saved;
}

ScopesAgain::ScopesAgain(const SavedScopes& saved)
    : examples_here_(innermost_example),
      transforms_here_(apply_instead(&saved.transforms_)),
      line_(saved.line_) {
  innermost_example = nullptr;
  for (auto scope = saved.examples_.rbegin(); scope != saved.examples_.rend(); ++scope)
    examples_.push_back(
        std::make_unique<ExampleScope>(scope->has_rows ? &scope->rows : nullptr, scope->sizes));
}

ScopesAgain::~ScopesAgain() {
  while (!examples_.empty()) examples_.pop_back();
  innermost_example = examples_here_;
  apply_instead(transforms_here_);
}

}  // namespace plait
