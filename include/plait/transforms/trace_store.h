// What a jitted function keeps: entries, one for each signature that it was called with.
//
// What a signature is says the caller, whose `matches` compares a call with an entry: structures
// and avals in C++; in Python also static arguments and what the function reads around it. Tracing
// happens between find and add, with nothing locked, because it runs user code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace plait {

// Mutex is held while entries are compared. Where that may run user code, which may come back here,
// it must let the same thread in again: the store may change between one comparison and the next.
template <class Entry, class Mutex = std::mutex>
class TraceStore {
 public:
  using Pointer = std::shared_ptr<Entry>;
  static constexpr std::size_t limit = 256;

  // The entry that matches, or nothing. That of the call before is tried first.
  template <class Matches>
  Pointer find(const Matches& matches) {
    const std::lock_guard lock(mutex_);
    return search(matches);
  }

  // Keeps an entry just made, and gives it back. Of traces of one signature that race, the first
  // stays: if another entry matches by now, that is given instead. The oldest makes room.
  template <class Matches>
  Pointer add(Pointer made, const Matches& matches) {
    Pointer oldest;  // let go of without the lock: it may hold what runs user code when it dies
    const std::lock_guard lock(mutex_);
    if (Pointer first = search(matches)) return first;
    if (entries_.size() >= limit) {
      oldest = std::move(entries_.front());
      entries_.erase(entries_.begin());
    }
    entries_.push_back(made);
    last_ = made;
    return made;
  }

  // The entry found or added last, or nothing.
  Pointer last() const {
    const std::lock_guard lock(mutex_);
    return last_;
  }
  // Those there are, the oldest first.
  std::vector<Pointer> entries() const {
    const std::lock_guard lock(mutex_);
    return entries_;
  }

  void clear() {
    std::vector<Pointer> entries;  // let go of without the lock, as above
    Pointer last;
    const std::lock_guard lock(mutex_);
    entries.swap(entries_);
    last.swap(last_);
  }

 private:
  // By index, and on copies, because the store may change meanwhile.
  template <class Matches>
  Pointer search(const Matches& matches) {
    Pointer last = last_;
    if (last && matches(*last)) return last;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      Pointer entry = entries_[i];
      if (entry == last || !matches(*entry)) continue;
      last_ = entry;
      return entry;
    }
    return nullptr;
  }

  mutable Mutex mutex_;
  std::vector<Pointer> entries_;
  Pointer last_;
};

}  // namespace plait
