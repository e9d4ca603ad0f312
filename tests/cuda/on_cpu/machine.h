// The machine that runs kernels on a CPU: a fiber for each thread, in an order by seed, and a check
// of every access and of every meeting of threads. What GPUs leave undefined ends a launch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "interface.h"

namespace on_cpu {

// Of an H100, but for the number of its multiprocessors: grids that fill it are small.
inline constexpr int num_multiprocessors = 6, threads_of_multiprocessor = 2048,
                     blocks_of_multiprocessor = 32, most_threads_of_block = 1024;
inline constexpr std::size_t static_shared_bytes = 48 << 10, shared_bytes_of_block = 227 << 10,
                             shared_bytes_of_multiprocessor = 228 << 10,
                             shared_bytes_for_system = 1 << 10;  // of each block

struct Launch {
  const Entry* kernel = nullptr;
  unsigned grid = 1, block = 1;
  std::size_t dynamic_bytes = 0;
  bool is_cooperative = false;
  int device = 0;
  std::uint64_t seed = 0;
};

struct Outcome {
  int error = 0;     // a CUresult
  std::string text;  // of the error
};

Machine& machine();  // what compiled texts are given
// One launch at a time; others wait.
Outcome run(const Launch& launch, void** params);

}  // namespace on_cpu
