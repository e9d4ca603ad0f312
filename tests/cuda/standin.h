// What tests ask of the stand-in of CUDA's driver, a library that plait loads in place of
// libcuda.so.1. It has two devices of compute capability 9.0, whose memory the host cannot follow;
// nothing runs when it is submitted, and kernels run on the CPU, in an order by seed (on_cpu).
//
// Variables of the environment: STANDIN_SEED seeds pauses of streams and the order of threads; 0:
// no pauses. STANDIN_MEMORY: bytes of each device. STANDIN_STREAM_VALUES=0: streams neither
// write values nor wait for them, and say so. STANDIN_MUTANT: an error in the
// text of kernels, see libnvrtc.cpp. STANDIN_FAULT, with which tests must fail: "waits" that
// do nothing, "frees" at once, "values" that are written at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

// name, result, parameters
#define STANDIN_CONTROLS(X)                                                                        \
  /* The n-th call from now on fails with code, a CUresult, and does nothing: of this function, or \
     (nullptr) of any that neither gives something back nor has to come before. n = 0: none. */    \
  X(standin_fail_call, void, const char*, int, int)                                                \
  X(standin_failed, bool) /* whether it has come to that call */                                   \
  X(standin_calls, long)  /* of all functions */                                                   \
  X(standin_calls_of, long, const char*)                                                           \
  /* What went wrong on a device, in words; "" before. Devices are lost by it until                \
     standin_forget_errors, which waits for what is pending. */                                    \
  X(standin_last_error, const char*)                                                               \
  X(standin_forget_errors, void)                                                                   \
  X(standin_set_seed, void, unsigned)                                                              \
  X(standin_set_memory, void, std::size_t)                                                         \
  X(standin_wait, void) /* for all streams */                                                      \
  /* How many there are: "stream", "event", "module", "graph", "graph exec", "pool", "bytes" of    \
     devices, "pinned bytes" of the host. */                                                       \
  X(standin_live, std::size_t, const char*)                                                        \
  X(standin_context_depth, std::size_t) /* contexts on the stack of this thread */

extern "C" {
#define STANDIN_DECLARE(name, result, ...) result name(__VA_ARGS__);
STANDIN_CONTROLS(STANDIN_DECLARE)
#undef STANDIN_DECLARE
}
