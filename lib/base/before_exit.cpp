// See before_exit.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/before_exit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
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
// Never destroyed: at exit other threads may still ask for more.
Ends& ends() {
  static Ends& ends = *new Ends;
  return ends;
}

// Exit destroys the objects of the thread that calls it first, then what libraries keep, the latest
// made first. This one is made in the thread that loads the library, most often the main thread.
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

// Of who loads a library. A forked child must not find it locked by a thread that it has not.
constinit std::mutex loading;
constinit bool may_load = true;
[[maybe_unused]] const int guarded =
    pthread_atfork([] { loading.lock(); }, [] { loading.unlock(); }, [] { loading.unlock(); });

void end_loading() {
  const std::lock_guard lock(loading);
  may_load = false;
}
[[maybe_unused]] const bool ends_before_exit = (before_exit(end_loading), true);

}  // namespace

void* open_library(const char* path, int flags) {
  const std::lock_guard lock(loading);
  return may_load ? dlopen(path, flags) : nullptr;
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
