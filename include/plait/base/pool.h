// The one thread pool: OpenMP's (libgomp), shared with oneDNN, entered through parallel_for.
//
// No #pragma omp in plait: calls go to GOMP_parallel, so that builds by clang share the same pool.
// Threads are never more than PLAIT_THREADS (default: the cores this process may run on). One caller
// runs wide at a time; others, and calls from inside a loop, run serially. After fork the child is
// single-threaded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace plait {

int num_threads();
void set_num_threads(int count);  // 1 <= count <= 1024; ValueError otherwise

using RangeFunction = void (*)(void* state, std::int64_t begin, std::int64_t end);

// Calls function on disjoint ranges that cover [0, count), in any order, each of at least grain
// iterations but the last. Serial when count <= grain. function must not throw.
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

}  // namespace plait
