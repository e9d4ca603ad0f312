// What a kernel that was compiled for the CPU and the machine that runs it know of each other. A
// compiled text is a small library: it holds kernels, and no part of the machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>

namespace on_cpu {

struct Index {
  unsigned x = 0;
};
// What differs from thread to thread.
struct Place {
  Index thread, block, block_size, grid_size;
};

// constant: through In<T>, whose memory no thread of the launch writes.
enum class Access : int { constant, read, write, atomic };
enum class Meeting : int { sync, index, down, up, exclusive_or, ballot };

// Where a text says something, for messages and to tell meetings apart.
struct Site {
  const char* file;
  int line;
};

// Addresses of shared memory, which no address of the device is.
inline constexpr unsigned long shared_bit = 1ul << 63;

// Functions do not return where a kernel did something wrong: then the launch is over.
struct Machine {
  const Place* place;  // of the thread that runs
  // Checks an access of the thread, and says where the memory is.
  void* (*access)(unsigned long address, unsigned bytes, unsigned alignment, Access access);
  // Address of a static array of the block; key stands for its declaration.
  unsigned long (*shared)(const void* key, const char* name, unsigned long bytes);
  unsigned long (*dynamic_shared)();
  void (*sync_block)(Site site);
  // The value that this lane gets of the lanes of mask.
  unsigned long (*meet)(Meeting meeting, unsigned mask, unsigned long value, int argument,
                        int width, Site site);
  void (*sync_grid)(unsigned long address, Site site);
  void (*fence)();
};

// A kernel of a text, as libnvrtc.cpp lists them behind it.
struct Entry {
  const char* name;  // nullptr: the end of the list
  void (*call)(void** params);
  int num_params;
  const unsigned* sizes;  // of params
  unsigned most_threads;  // of a block: its __launch_bounds__, or 0
};

template <auto kernel>
struct Call;
template <class... P, void (*kernel)(P...)>
struct Call<kernel> {
  static constexpr unsigned sizes[sizeof...(P) + 1] = {unsigned(sizeof(P))...};
  static void call(void** params) { with(params, std::index_sequence_for<P...>()); }
  template <std::size_t... i>
  static void with([[maybe_unused]] void** params, std::index_sequence<i...>) {
    kernel(*static_cast<P*>(params[i])...);
  }
};
template <auto kernel, class... P>
constexpr Entry entry(const char* name, unsigned most_threads, void (*)(P...)) {
  return {name, &Call<kernel>::call, int(sizeof...(P)), Call<kernel>::sizes, most_threads};
}

}  // namespace on_cpu
