// Progress: long work (tracing, compiling, maps in chunks, verifying files) says how far it is.
//
// Until set_progress is called, work that takes longer than a second is shown as one line on
// standard error, where that is a terminal, and the line is removed when the work ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace plait {

struct Progress {
  std::string what;          // "compiling"
  std::int64_t done, total;  // total: 0 where it is not known
  double seconds;            // since the work began
  bool is_last;              // the work has ended, or failed
};

// Who is told, at most ten times a second and once at the end, of work that takes longer than
// `after` seconds; a null function silences it. Called on the thread that works, which it must not
// throw through.
using ProgressCallback = std::function<void(const Progress&)>;
void set_progress(ProgressCallback callback, double after = 1.0);
// The line on standard error again.
void reset_progress();

// Long work of this thread while it lives. Work within other such work is part of it and says
// nothing of its own.
class ProgressScope {
 public:
  ProgressScope(const char* what, std::int64_t total);
  ~ProgressScope();
  ProgressScope(const ProgressScope&) = delete;
  // One more part is done: a counter and a comparison, but for every so many.
  void step() {
    if (++done_ >= next_) look();
  }
  // The same for the work that this thread is at, if that does not know its total.
  static void step_of_unknown();

 private:
  void look();
  void tell(bool is_last);
  const char* const what_;
  const std::int64_t total_;
  std::int64_t done_ = 0, next_, stride_ = 1;
  bool is_outermost_, was_told_ = false;
  double start_ = 0, last_look_ = 0, last_told_ = 0;
};

// In its scope this thread says nothing: work that nobody waits for.
class SilentProgress {
 public:
  SilentProgress();
  ~SilentProgress();
  SilentProgress(const SilentProgress&) = delete;
};

}  // namespace plait
