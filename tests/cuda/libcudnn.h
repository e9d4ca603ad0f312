// What tests ask of the stand-in of cuDNN.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/cudnn/api.h"

// name, result, parameters
#define STANDIN_CUDNN_CONTROLS(X)                                                                  \
  X(standin_graphs, long)                       /* that were executed */                           \
  X(standin_last_graph, const char*)            /* "forward 2x3x8x8 by 4x3x3x3 first bias relu" */ \
  X(standin_plans, long)                        /* that were finalized */                          \
  X(standin_handles, long)                      /* that were made */                               \
  X(standin_fail_cudnn, void, const char*, int) /* a call's next execution, with a status */       \
  X(standin_last_engine, int)                   /* of the last graph */                            \
  /* Proposes so many engines of convolutions, which take so many microseconds longer than they    \
     do, in place of the one that there is. */                                                     \
  X(standin_plant_engines, void, const int*, int)                                                  \
  X(standin_set_fused, void, bool)     /* whether engines take more than a convolution */          \
  X(standin_set_proposals, void, bool) /* whether heuristics of mode A propose any */

extern "C" {
#define STANDIN_DECLARE(name, result, ...) result name(__VA_ARGS__);
STANDIN_CUDNN_CONTROLS(STANDIN_DECLARE)
#undef STANDIN_DECLARE
}

// All that plait calls: definitions that differ do not compile.
namespace plait::cuda {
extern "C" {
#define STANDIN_DECLARE(name, result, ...) result name(__VA_ARGS__);
PLAIT_CUDNN(STANDIN_DECLARE)
#undef STANDIN_DECLARE
}
}  // namespace plait::cuda
