// What tests ask of the stand-in of cuBLASLt.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/cublaslt/api.h"

// name, result, parameters
#define STANDIN_CUBLASLT_CONTROLS(X)                                                        \
  X(standin_products, long)            /* that were started */                              \
  X(standin_last_product, const char*) /* "NT 64x32x16 batch 2 bias relu adds" */           \
  X(standin_last_algorithm, int)       /* its number among those proposed */                \
  X(standin_set_epilogues, void, bool) /* whether there are algorithms with epilogues */    \
  X(standin_refuse_rows, void, long)   /* results of so many rows: no algorithm; 0: none */ \
  /* Proposes so many algorithms, which take so many microseconds longer than they do. */   \
  X(standin_plant_algorithms, void, const int*, int)

extern "C" {
#define STANDIN_DECLARE(name, result, ...) result name(__VA_ARGS__);
STANDIN_CUBLASLT_CONTROLS(STANDIN_DECLARE)
#undef STANDIN_DECLARE
}

// All that plait calls: definitions that differ do not compile.
namespace plait::cuda {
extern "C" {
#define STANDIN_DECLARE(name, result, ...) result name(__VA_ARGS__);
PLAIT_CUBLASLT(STANDIN_DECLARE)
#undef STANDIN_DECLARE
}
}  // namespace plait::cuda
