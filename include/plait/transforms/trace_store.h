// What a jitted function keeps: entries, one for each signature that it was called with.
//
// What a signature is says the caller, whose `matches` compares a call with an entry: structures
// and avals in C++; in Python also static arguments and what the function reads around it. The
// named axes and default dtypes around a call belong to it too, and are compared here. Tracing
// happens between find and add, with nothing locked, because it runs user code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dtype.h>
#include <plait/trace/named_axes.h>

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
      oldest = std::move(entries_.front().entry);
      entries_.erase(entries_.begin());
    }
    entries_.push_back({made, Around{}});
    last_ = entries_.back();
    return made;
  }

  // The entry found or added last, or nothing.
  Pointer last() const {
    const std::lock_guard lock(mutex_);
    return last_.entry;
  }
  // What is around this call that was not around the one that found or added last, or nullptr.
  const char* changed_around() const {
    const std::lock_guard lock(mutex_);
    return last_.around.change();
  }
  // Those there are, the oldest first.
  std::vector<Pointer> entries() const {
    const std::lock_guard lock(mutex_);
    std::vector<Pointer> all;
    for (const Kept& kept : entries_) all.push_back(kept.entry);
    return all;
  }

  void clear() {
    std::vector<Kept> entries;  // let go of without the lock, as above
    Kept last;
    const std::lock_guard lock(mutex_);
    entries.swap(entries_);
    std::swap(last, last_);
  }

 private:
  struct Around {
    NamedAxes axes = NamedAxes::current();
    DefaultDTypes dtypes = DefaultDTypes::current();
    const char* change() const {
      return !axes.are_current()                  ? "other named axes"
             : dtypes != DefaultDTypes::current() ? "other default dtypes"
                                                  : nullptr;
    }
  };
  struct Kept {
    Pointer entry;
    Around around;
  };

  // By index, and on copies, because the store may change meanwhile.
  template <class Matches>
  Pointer search(const Matches& matches) {
    Pointer last = last_.around.change() ? nullptr : last_.entry;
    if (last && matches(*last)) return last;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].around.change()) continue;
      Pointer entry = entries_[i].entry;
      if (entry == last || !matches(*entry)) continue;
      last_ = {entry, Around{}};
      return entry;
    }
    return nullptr;
  }

  mutable Mutex mutex_;
  std::vector<Kept> entries_;
  Kept last_;
};

}  // namespace plait
