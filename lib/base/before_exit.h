// What must have ended before exit destroys the objects of libraries that threads use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace plait {

// Calls end when the main thread leaves main or calls exit, before any object with static storage
// is destroyed, or at once when it has left already; where another thread calls exit, before the
// objects that were made earlier than this call. end is called twice, and while other threads run.
void before_exit(void (*end)());

// dlopen, which that end waits for, and behind which nothing is loaded: a library is not made ready
// while others are destroyed. nullptr where it fails; dlerror says why, or nothing at the end.
void* open_library(const char* path, int flags);

// A thread is about to use a library that keeps objects which exit destroys. Exit waits for uses
// that have begun; one that comes later is refused, unless it is within another or of the thread
// that exits.
class LibraryUse {
 public:
  LibraryUse();
  ~LibraryUse();
  LibraryUse(const LibraryUse&) = delete;
  LibraryUse& operator=(const LibraryUse&) = delete;

  bool is_refused() const { return is_refused_; }
  // For who can do nothing else: the thread stops here, since the process ends.
  void stop_if_refused() const;

 private:
  bool is_refused_ = false;
};

}  // namespace plait
