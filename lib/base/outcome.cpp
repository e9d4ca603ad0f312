// See outcome.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/outcome.h"

#include <algorithm>

namespace plait {
namespace {

constinit thread_local const OutcomeScope* innermost_scope = nullptr;

}  // namespace

void Outcome::read(std::shared_ptr<Outcome> other) {
  if (other.get() == this || other->is_fine()) return;
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(read_, other) == read_.end()) read_.push_back(std::move(other));
}

Outcome::Told Outcome::is_told() {
  const std::lock_guard lock(mutex_);
  if (!is_told_) is_told_ = std::make_shared<std::atomic<bool>>(false);
  return is_told_;
}

void Outcome::add_part(const std::shared_ptr<Outcome>& part) {
  Told told = is_told();
  {
    const std::lock_guard lock(part->mutex_);
    part->is_told_ = std::move(told);
  }
  read(part);
}

void Outcome::settle(std::exception_ptr thrown) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (is_settled_) return;
    is_settled_ = true;
    thrown_ = std::move(thrown);
  }
  resolve();
}

// Whether nothing can change any more. Forgets what is fine, and takes over the first failure.
bool Outcome::resolve() noexcept {
  std::vector<std::shared_ptr<Outcome>> dropped;  // destroyed without the mutex
  const std::lock_guard lock(mutex_);
  if (!is_settled_) return false;
  bool is_open = false;
  for (const std::shared_ptr<Outcome>& one : read_) {
    if (thrown_) break;
    if (one->resolve())
      thrown_ = one->thrown_;
    else
      is_open = true;
  }
  if (thrown_ || !is_open) read_.swap(dropped);
  return read_.empty();
}

bool Outcome::is_fine() noexcept { return resolve() && !thrown_; }

std::exception_ptr Outcome::failure() {
  if (!resolve()) {
    stream_.let_go();  // which settles what is done
    std::vector<std::shared_ptr<Outcome>> open;
    {
      const std::lock_guard lock(mutex_);
      open = read_;
    }
    for (const std::shared_ptr<Outcome>& one : open)
      if (const std::exception_ptr thrown = one->failure()) return thrown;
    resolve();
  }
  const std::lock_guard lock(mutex_);
  return thrown_;
}

OutcomeScope::OutcomeScope(std::shared_ptr<Outcome> outcome)
    : outcome_(std::move(outcome)), outer_(innermost_scope) {
  innermost_scope = this;
}

OutcomeScope::~OutcomeScope() { innermost_scope = outer_; }

const std::shared_ptr<Outcome>& OutcomeScope::current() {
  static const auto& none = *new std::shared_ptr<Outcome>;
  return innermost_scope ? innermost_scope->outcome_ : none;
}

}  // namespace plait
