// See before_exit.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/before_exit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace plait {
namespace {

struct Ends {
  std::mutex mutex;
  std::vector<void (*)()> all;
  bool have_run = false;
};
// Never destroyed: other threads may still register at exit.
Ends& ends() {
  static Ends& ends = *new Ends;
  return ends;
}

// Exit first destroys the thread_local objects of the thread that calls it, then the static objects
// of libraries, the latest made first. This object is made in the thread that loads the library,
// most often the main thread.
struct EndOfMain {
  bool is_watched = false;
  ~EndOfMain() {
    if (gettid() != getpid()) return;
    std::vector<void (*)()> all;
    {
      const std::lock_guard lock(ends().mutex);
      all = ends().all;
      ends().have_run = true;
    }
    for (auto end = all.rbegin(); end != all.rend(); ++end) (*end)();
  }
};
thread_local EndOfMain end_of_main;
[[maybe_unused]] const bool watched = end_of_main.is_watched = true;

// Held while a library is loaded.
constinit std::mutex loading;
constinit bool may_load = true;
constinit thread_local bool is_loading = false;  // by this thread: a library may load others
// A forked child must not find them locked by a thread that it does not have.
void lock_all() { loading.lock(), ends().mutex.lock(); }
void unlock_all() { ends().mutex.unlock(), loading.unlock(); }
[[maybe_unused]] const int guarded = pthread_atfork(lock_all, unlock_all, unlock_all);

void end_loading() {
  const std::lock_guard lock(loading);
  may_load = false;
}
[[maybe_unused]] const bool ends_before_exit = (before_exit(end_loading), true);

// Uses of libraries, by all threads and by this one.
constinit std::atomic<int> num_uses{0};
constinit thread_local int num_own_uses = 0;
constinit std::atomic<pid_t> exiting_thread{0};

void end_uses() {
  exiting_thread = gettid();
  for (int uses = num_uses; uses > num_own_uses; uses = num_uses) num_uses.wait(uses);
}
[[maybe_unused]] const bool uses_end = (before_exit(end_uses), true);
// In a forked child only this thread continues.
[[maybe_unused]] const int counted = pthread_atfork(nullptr, nullptr, [] {
  num_uses = num_own_uses;
  exiting_thread = 0;
});

// Libraries make their static objects one by one, as they are used, but ever more rarely, so
// end_uses is registered again at use number 1, 2, 4, 8, ...
void end_uses_before_libraries() {
  static std::atomic<unsigned> uses{0};
  if (std::has_single_bit(++uses)) before_exit(end_uses);
}

}  // namespace

LibraryUse::LibraryUse() {
  ++num_uses;
  const pid_t exiting = exiting_thread;
  if (exiting == 0 || num_own_uses > 0 || exiting == gettid()) {
    ++num_own_uses;
    return;
  }
  is_refused_ = true;
  --num_uses;
  num_uses.notify_all();
}

LibraryUse::~LibraryUse() {
  if (is_refused_) return;
  end_uses_before_libraries();
  --num_own_uses;
  --num_uses;
  if (exiting_thread != 0) num_uses.notify_all();
}

void LibraryUse::stop_if_refused() const {
  while (is_refused_) pause();
}

void* open_library(const char* path, int flags) {
  if (is_loading) return dlopen(path, flags);
  const std::lock_guard lock(loading);
  if (!may_load) return nullptr;
  is_loading = true;
  void* const library = dlopen(path, flags);
  is_loading = false;
  return library;
}

void before_exit(void (*end)()) {
  bool is_late = false;
  {
    const std::lock_guard lock(ends().mutex);
    auto& all = ends().all;
    const bool is_first = std::find(all.begin(), all.end(), end) == all.end();
    if (is_first) all.push_back(end);
    is_late = is_first && ends().have_run;
  }
  if (is_late) return end();
  std::atexit(end);
}

}  // namespace plait
