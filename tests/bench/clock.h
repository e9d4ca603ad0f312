// The clock of benchmarks whose work is on one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <ctime>

// The process's own time, for others want the cores too.
inline double seconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

// The best of several rounds, in nanoseconds a call.
template <class F>
double nanoseconds(int rounds, int calls, const F& f) {
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const double start = seconds();
    for (int i = 0; i < calls; ++i) f();
    best = std::min(best, (seconds() - start) / calls);
  }
  return best * 1e9;
}
