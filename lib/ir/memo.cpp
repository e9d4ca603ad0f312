// See memo.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ir/memo.h>

#include <algorithm>
#include <optional>

namespace plait {

std::shared_ptr<const void> Memo::find_locked(const Asked& asked) const {
  for (const Entry& entry : entries_)
    if (entry.type == asked.type && asked.equals(entry.question.get())) return entry.answer;
  return nullptr;
}

std::shared_ptr<const void> Memo::find(const Asked& asked) const {
  std::lock_guard lock(mutex_);
  return find_locked(asked);
}

std::shared_ptr<const void> Memo::keep(const Asked& asked, std::shared_ptr<const void> question,
                                       std::shared_ptr<const void> answer) const {
  constexpr std::ptrdiff_t limit = 64;
  std::optional<Entry> dropped;  // destroyed after the lock is released: it may be large
  std::lock_guard lock(mutex_);
  if (std::shared_ptr<const void> first = find_locked(asked)) return first;
  const auto is_alike = [&](const Entry& entry) { return entry.type == asked.type; };
  if (std::ranges::count_if(entries_, is_alike) >= limit) {
    const auto oldest = std::ranges::find_if(entries_, is_alike);
    dropped = std::move(*oldest);
    entries_.erase(oldest);
  }
  entries_.push_back({asked.type, std::move(question), answer});
  return answer;
}

}  // namespace plait
