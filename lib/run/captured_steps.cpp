// See captured_steps.h.
// SPDX-License-Identifier: Apache-2.0
#include "run/captured_steps.h"

#include <algorithm>

namespace plait {
namespace {

constexpr std::size_t most_entries = 4;
// Making captured work costs as much as several calls: what is called once or twice goes without.
constexpr int first_calls = 2;
constexpr int most_costly_in_row = 8;

}  // namespace

bool CapturedSteps::replay(const Stream& stream, std::span<void* const> addresses) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || is_off_) return false;
  Entry* const entry = find(addresses);
  if (!entry) return false;
  costly_in_row_ = 0;
  replay(*entry, *driver_of(stream.device().kind), stream);
  return true;
}

void CapturedSteps::submit(const Stream& stream, std::span<void* const> addresses,
                           const std::function<void()>& give) {
  std::unique_lock lock(mutex_, std::try_to_lock);
  Driver& driver = *driver_of(stream.device().kind);
  Entry* entry = nullptr;
  if (lock && !is_off_ && ++num_unmet_ > first_calls) entry = captured(driver, stream, give);
  if (!entry) {
    lock = {};
    return give();
  }
  entry->addresses.assign(addresses.begin(), addresses.end());
  replay(*entry, driver, stream);
}

void CapturedSteps::replay(Entry& entry, Driver& driver, const Stream& stream) {
  entry.last_met = ++clock_;
  driver.replay(stream.handle(), *entry.work);
}

CapturedSteps::Entry* CapturedSteps::find(std::span<void* const> addresses) {
  const auto found = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return std::ranges::equal(entry.addresses, addresses); });
  return found == entries_.end() ? nullptr : &*found;
}

CapturedSteps::Entry* CapturedSteps::captured(Driver& driver, const Stream& stream,
                                              const std::function<void()>& give) {
  if (entries_.size() < most_entries) {
    std::unique_ptr<Driver::Captured> work = driver.capture(stream.handle(), give);
    is_off_ = !work;
    if (is_off_) return nullptr;
    entries_.push_back({{}, std::move(work)});
    return &entries_.back();
  }
  const auto oldest = std::ranges::min_element(entries_, {}, &Entry::last_met);
  bool is_cheap = false;
  try {
    is_cheap = driver.change(stream.handle(), *oldest->work, give);
  } catch (...) {
    entries_.erase(oldest);
    throw;
  }
  costly_in_row_ = is_cheap ? 0 : costly_in_row_ + 1;
  is_off_ = costly_in_row_ >= most_costly_in_row;
  return &*oldest;
}

}  // namespace plait
