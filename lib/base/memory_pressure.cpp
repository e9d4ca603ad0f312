// Asks the system how much memory is left. See memory_pressure.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/memory_pressure.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <new>

#include "base/cgroup.h"

namespace plait {
namespace {

constexpr double kib = 1024;  // /proc/meminfo counts in these

bool ask_system() {
  const auto available = read_entry("/proc/meminfo", "MemAvailable:");
  const auto total = read_entry("/proc/meminfo", "MemTotal:");
  if (available && total && *available < *total / 16) return true;
  const auto limit = cgroup_memory();
  if (!limit || (total && static_cast<double>(*limit) >= *total * kib)) return false;
  const auto left = cgroup_memory_left();
  return left && *left < *limit / 16;
}

}  // namespace

bool memory_is_short() noexcept {
  constexpr std::int64_t interval = 250'000'000;
  static constinit std::atomic<std::int64_t> next_question{0};
  static constinit std::atomic<bool> answer{false};
  const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
  std::int64_t due = next_question.load(std::memory_order_relaxed);
  if (now >= due && next_question.compare_exchange_strong(due, now + interval)) {
    bool is_short = true;  // if there is not even memory to ask
    try {
      is_short = ask_system();
    } catch (const std::bad_alloc&) {
    }
    answer.store(is_short, std::memory_order_relaxed);
  }
  return answer.load(std::memory_order_relaxed);
}

}  // namespace plait
