// The language of kernels, on the GPU. Kernels use what is declared here and in CUDA's own
// language: threadIdx, blockIdx, blockDim and gridDim (x alone), __syncthreads, __syncwarp, the
// shuffles of numbers of 4 and 8 bytes, __threadfence, atomics. tests/cuda/on_cpu has a second
// definition of all of it, by which the same text runs on a CPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#define HUGE_VALF __builtin_bit_cast(float, 0x7f800000u)
#define HUGE_VAL __builtin_bit_cast(double, 0x7ff0000000000000ul)

// Memory of the device: operands, and what is written, which lies in nothing else; and what is
// written and changes places with other memory.
template <class T>
using In = const T* __restrict__;
template <class T>
using Out = T* __restrict__;
template <class T>
using Moving = T*;

#define SHARED(T, name, count)                                              \
  __shared__ __align__(16) unsigned char name##_bytes[sizeof(T) * (count)]; \
  T* const name = reinterpret_cast<T*>(name##_bytes)

// Four neighbours at once; the address of the first is a multiple of all their bytes.
template <class T>
struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) Four {
  T at[4];
};
template <class T>
Four<T> load4(const T* memory, long i) {
  return *reinterpret_cast<const Four<T>*>(memory + i);
}
template <class T>
void store4(T* memory, long i, const Four<T>& four) {
  *reinterpret_cast<Four<T>*>(memory + i) = four;
}

// Where a kernel leaves word that it has failed: as in plait/run/kernel.h.
struct Failure {
  int step;
  int code;
  long values[7];
};
// The first failure of a call counts. step: 1 + the number of the step.
inline void fail(Failure* failure, int step, int code, long value) {
  if (atomicCAS(&failure->step, 0, -1) != 0) return;
  failure->code = code;
  failure->values[0] = value;
  __threadfence_system();
  atomicExch(&failure->step, step);
}

// Where the blocks of a cooperative launch meet; zeros before the first meeting.
struct Grid {
  unsigned arrived, meetings;
};
inline void sync_grid(Grid* grid) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    const unsigned meeting = atomicAdd(&grid->meetings, 0u);
    if (atomicAdd(&grid->arrived, 1u) == gridDim.x - 1) {
      atomicExch(&grid->arrived, 0u);
      __threadfence();
      atomicAdd(&grid->meetings, 1u);
    } else {
      while (atomicAdd(&grid->meetings, 0u) == meeting) __nanosleep(20);
    }
    __threadfence();
  }
  __syncthreads();
}
