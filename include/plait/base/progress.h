// Progress: how far long work has come (tracing, compiling, maps in chunks, verifying files).
//
// By default, work that takes longer than a second is shown as one line on standard error, if that
// is a terminal, and the line is removed when the work ends.
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

// Sets the function that is told of work that takes longer than `after` seconds, at most ten times
// a second and once at the end. A null function silences progress. It is called on the working
// thread and must not throw.
using ProgressCallback = std::function<void(const Progress&)>;
void set_progress(ProgressCallback callback, double after = 1.0);
// Restores the default line on standard error.
void reset_progress();

// Long work of this thread, while the object lives. Nested work counts as part of the outer work
// and reports nothing of its own.
class ProgressScope {
 public:
  ProgressScope(const char* what, std::int64_t total);
  ~ProgressScope();
  ProgressScope(const ProgressScope&) = delete;
  // One more part is done. The cost is a counter and a comparison, except once every many steps.
  void step() {
    if (++done_ >= next_) poll();
  }
  // The same for the current work of this thread, if its total is not known.
  static void step_of_unknown();

 private:
  void poll();
  void tell(bool is_last);
  const char* const what_;
  const std::int64_t total_;
  std::int64_t done_ = 0, next_, stride_ = 1;
  bool is_outermost_, was_told_ = false;
  double start_ = 0, last_poll_ = 0, last_told_ = 0;
};

// In its scope this thread reports nothing: for work that nobody waits for.
class SilentProgress {
 public:
  SilentProgress();
  ~SilentProgress();
  SilentProgress(const SilentProgress&) = delete;
};

}  // namespace plait
