// See progress.h. The interval between reads of the clock adapts to the speed of the work.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/progress.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <mutex>

namespace plait {
namespace {

constexpr double between = 0.1;  // seconds from one message to the next
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

thread_local int depth = 0;
thread_local ProgressScope* of_unknown = nullptr;  // the work, where its total is not known

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void show_line(const Progress& progress) {
  if (progress.is_last) {
    std::fputs("\r\x1b[K", stderr);
  } else {
    const int percent = progress.total ? int(100 * progress.done / progress.total) : 0;
    std::fprintf(stderr, "\r\x1b[Kplait: %s %lld", progress.what.c_str(),
                 static_cast<long long>(progress.done));
    if (progress.total)
      std::fprintf(stderr, " of %lld (%d %%)", static_cast<long long>(progress.total), percent);
    std::fprintf(stderr, ", %.0f s", progress.seconds);
  }
  std::fflush(stderr);
}

struct Listener {
  ProgressCallback callback;
  double after;
};
std::mutex mutex;
// Never destroyed: work may continue while the process exits.
std::shared_ptr<const Listener>& listener() {
  static auto& listener = *new std::shared_ptr<const Listener>(std::make_shared<Listener>(
      Listener{isatty(2) ? ProgressCallback(show_line) : ProgressCallback(), 1.0}));
  return listener;
}
std::shared_ptr<const Listener> current() {
  const std::lock_guard lock(mutex);
  return listener();
}
void install(ProgressCallback callback, double after) {
  auto made = std::make_shared<const Listener>(Listener{std::move(callback), after});
  const std::lock_guard lock(mutex);
  std::swap(listener(), made);  // the old one is destroyed after the lock is released
}

}  // namespace

void set_progress(ProgressCallback callback, double after) { install(std::move(callback), after); }
void reset_progress() {
  install(isatty(2) ? ProgressCallback(show_line) : ProgressCallback(), 1.0);
}

ProgressScope::ProgressScope(const char* what, std::int64_t total)
    : what_(what), total_(total), next_(1), is_outermost_(depth++ == 0) {
  if (!is_outermost_) {
    next_ = never;
    return;
  }
  start_ = last_poll_ = now();
  if (total == 0) of_unknown = this;
}

ProgressScope::~ProgressScope() {
  --depth;
  if (of_unknown == this) of_unknown = nullptr;
  if (was_told_) tell(true);
}

void ProgressScope::step_of_unknown() {
  if (of_unknown) of_unknown->step();
}

void ProgressScope::poll() {
  const double time = now();
  // About ten polls fall between two messages.
  if (time - last_poll_ < between / 20)
    stride_ = std::min<std::int64_t>(stride_ * 2, 1 << 20);
  else if (time - last_poll_ > between / 5)
    stride_ = std::max<std::int64_t>(stride_ / 2, 1);
  next_ = done_ + stride_;
  last_poll_ = time;
  if (time - last_told_ >= between) tell(false);
}

void ProgressScope::tell(bool is_last) {
  const std::shared_ptr<const Listener> to = current();
  const double time = now();
  if (!to->callback || (!is_last && time - start_ < to->after)) return;
  last_told_ = time;
  was_told_ = true;
  to->callback({what_, done_, total_, time - start_, is_last});
}

SilentProgress::SilentProgress() { ++depth; }
SilentProgress::~SilentProgress() { --depth; }

}  // namespace plait
