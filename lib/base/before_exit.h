// Work that must end before exit destroys the static objects of libraries that threads use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace plait {

// Registers end, which is called when the main thread leaves main or calls exit, before any object
// with static storage is destroyed; at once, if it has left already. Where another thread calls
// exit, end is called before the objects that were made earlier than this call are destroyed. end
// is called twice, and while other threads run.
void before_exit(void (*end)());

// dlopen, for which exit waits, and after which nothing is loaded: a library must not initialise
// while others are destroyed. nullptr on failure: dlerror gives the reason, or nothing during exit.
void* open_library(const char* path, int flags);

// The use, by this thread, of a library whose static objects exit destroys. Exit waits for uses
// that have begun. A later one is refused, unless it is nested in another or belongs to the thread
// that exits.
class LibraryUse {
 public:
  LibraryUse();
  ~LibraryUse();
  LibraryUse(const LibraryUse&) = delete;
  LibraryUse& operator=(const LibraryUse&) = delete;

  bool is_refused() const { return is_refused_; }
  // For callers that have no alternative: the thread stops here, since the process ends.
  void stop_if_refused() const;

 private:
  bool is_refused_ = false;
};

}  // namespace plait
