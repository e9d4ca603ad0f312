// The language of kernels, on the GPU. Kernels use what is declared here and in CUDA's own
// language: threadIdx, blockIdx, blockDim and gridDim (x alone), __syncthreads, __syncwarp, the
// shuffles of numbers of 4 and 8 bytes, __threadfence, atomics. tests/cuda/on_cpu has a second
// definition of all of it, by which the same text runs on a CPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#define HUGE_VALF __builtin_bit_cast(float, 0x7f800000u)
#define HUGE_VAL __builtin_bit_cast(double, 0x7ff0000000000000ul)

// Memory of the device: operands, and what is written, which lies in nothing else. What is written
// and read too may be what other threads have written, or changes places with other memory: no
// value of it is known without a load.
template <class T>
using In = const T* __restrict__;
template <class T>
using Out = T* __restrict__;
template <class T>
using InOut = T*;

#define SHARED(T, name, count)                                              \
  __shared__ __align__(16) unsigned char name##_bytes[sizeof(T) * (count)]; \
  T* const name = reinterpret_cast<T*>(name##_bytes)

// What a launch gives beside.
#define SHARED_BYTES(name) extern __shared__ __align__(16) unsigned char name[]

// Four neighbours at once; the address of the first is a multiple of all their bytes.
template <class T>
struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) Four {
  T at[4];
};
template <class T>
bool begins_fours(const T* memory) {
  return reinterpret_cast<unsigned long>(memory) % alignof(Four<T>) == 0;
}
template <class T>
Four<T> load4(const T* memory, long i) {
  return *reinterpret_cast<const Four<T>*>(memory + i);
}
template <class T>
void store4(T* memory, long i, const Four<T>& four) {
  *reinterpret_cast<Four<T>*>(memory + i) = four;
}

// Where a kernel leaves word that it has failed: as in plait/run/kernel.h. The host writes the last
// one of values there when it wants the kernels of a call to stop (run/stop.h).
struct Failure {
  int step;
  int code;
  long value;
  long order;  // in that of failures of a kernel
  long values[4];
  long stop;
};
// Where a kernel of a program says so: failed holds the number of the program's kernel that has
// failed, from 1 on, and step is 1 + the number of the call's step.
struct Word {
  int* failed;
  int kernel;
  Failure* failure;
  int step;
};
// Kernels behind one that has failed do nothing. All threads agree, whatever fails meanwhile.
inline bool has_failed_before(Out<int> failed, int kernel) {
  const int number = *(volatile int*)failed;
  return number != 0 && number < kernel;
}
// The first failure of a call counts: of the threads of a kernel that of the lowest order,
// whichever comes first.
inline void fail(const Word& word, int code, long value, long order) {
  Failure* const failure = word.failure;
  atomicExch(word.failed, word.kernel);
  constexpr int being_written = -1;
  const auto is_later = [&] { return order >= *(volatile long*)&failure->order; };
  int known;
  do {
    while ((known = *(volatile int*)&failure->step) == being_written) __nanosleep(20);
    if (known != 0 && (known != word.step || is_later())) return;
  } while (atomicCAS(&failure->step, known, being_written) != known);
  if (known == 0 || !is_later()) {
    *(volatile int*)&failure->code = code;
    *(volatile long*)&failure->value = value;
    *(volatile long*)&failure->order = order;
  }
  __threadfence_system();
  atomicExch(&failure->step, word.step);
}
// What follows checks in the same kernel asks whether one has failed, whichever thread has found
// it.
inline bool has_failed(const Word& word) { return *(volatile int*)word.failed != 0; }
// Whether a loop that may be endless is to stop: the host wants it, or the call has failed.
inline bool is_stopped(const Word& word) {
  if (*(volatile long*)&word.failure->stop != 0) fail(word, -1, 0, 0);
  return *(volatile int*)&word.failure->step != 0;
}
// What thread 0 of the block says.
inline bool from_first_thread(bool x) {
  __shared__ bool said;
  __syncthreads();
  if (threadIdx.x == 0) said = x;
  __syncthreads();
  return said;
}

// Where the blocks of a cooperative launch meet; zeros before the first meeting.
struct Grid {
  unsigned arrived, meetings;
  unsigned said;
};
inline void sync_grid(Grid* grid) {
  __syncthreads();
  if (threadIdx.x == 0) {
    volatile unsigned* const meetings = &grid->meetings;
    const unsigned meeting = *meetings;
    __threadfence();  // what this block has done comes before its arrival
    if (atomicAdd(&grid->arrived, 1u) == gridDim.x - 1) {
      atomicExch(&grid->arrived, 0u);
      __threadfence();
      *meetings = meeting + 1;
    } else {
      while (*meetings == meeting) __nanosleep(20);
    }
    __threadfence();
  }
  __syncthreads();
}
// What thread 0 of block 0 says.
inline bool from_first_block(bool x, Grid* grid) {
  sync_grid(grid);
  if (blockIdx.x == 0 && threadIdx.x == 0) *(volatile unsigned*)&grid->said = x;
  sync_grid(grid);
  return *(volatile unsigned*)&grid->said != 0;
}
