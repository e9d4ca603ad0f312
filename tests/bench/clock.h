// The clock of benchmarks whose work is on one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>

// The process's own time, for others want the cores too.
inline double seconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}
