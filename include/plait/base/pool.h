// The one thread pool: OpenMP's (libgomp), shared with oneDNN, entered through parallel_for.
//
// No #pragma omp in plait: calls go to GOMP_parallel, so that builds by clang share the same pool,
// and libgomp is loaded, not linked: see NOTE: [waiting threads] in lib/base/pool.cpp. Threads are
// never more than PLAIT_THREADS (default: OMP_NUM_THREADS, else the cores this process may run on).
// One caller runs wide at a time; others, and calls from inside a wide loop, run serially. After
// fork the child is single-threaded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace plait {

int num_threads();                // ValueError when PLAIT_THREADS is not a number of threads
void set_num_threads(int count);  // 1 <= count <= 1024; ValueError otherwise

using RangeFunction = void (*)(void* state, std::int64_t begin, std::int64_t end);

// Calls function on disjoint ranges that cover [0, count), in any order, a few on each thread: one
// that is slow to wake leaves its ranges to the others. Each range but the last has at least grain
// iterations; with fewer than two such ranges the call is serial. A grain should take 20 us or
// more, about the time that waking a thread takes. If function throws, the other ranges run to
// their ends, and the exception of the range that begins first is thrown here.
void parallel_for(std::int64_t count, std::int64_t grain, RangeFunction function, void* state);

template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, const Body& body) {
  parallel_for(
      count, grain,
      [](void* state, std::int64_t begin, std::int64_t end) {
        (*static_cast<const Body*>(state))(begin, end);
      },
      const_cast<Body*>(&body));
}

// Surrounds a call into a library that runs its own OpenMP loops on this thread (oneDNN). Inside,
// OpenMP's thread count is num_threads(), at most max_threads, if no other caller runs wide, else
// 1: the library obeys the same permit as parallel_for.
class PoolScope {
 public:
  explicit PoolScope(int max_threads = 1024);
  ~PoolScope();
  PoolScope(const PoolScope&) = delete;
  int num_threads() const { return num_threads_; }

 private:
  int num_threads_, outer_num_threads_;
  bool holds_permit_;
};

}  // namespace plait
