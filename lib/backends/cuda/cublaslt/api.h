// What plait calls of cuBLASLt, declared here and found at run time, as ../api.h does for the
// driver. tests/nvrtc/cublaslt_headers.cpp compares all of it with cuBLASLt's own header, whose
// names these are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/api.h"

namespace plait::cuda {

using cublasStatus_t = int;
using cudaDataType_t = int;
using cublasComputeType_t = int;
using cublasLtHandle_t = struct cublasLtContext*;

// Opaque; with the sizes that they have.
struct cublasLtMatmulAlgo_t {
  std::uint64_t data[8];
};
struct cublasLtMatmulDescOpaque_t {
  std::uint64_t data[32];
};
struct cublasLtMatrixLayoutOpaque_t {
  std::uint64_t data[8];
};
struct cublasLtMatmulPreferenceOpaque_t {
  std::uint64_t data[8];
};
using cublasLtMatmulDesc_t = cublasLtMatmulDescOpaque_t*;
using cublasLtMatrixLayout_t = cublasLtMatrixLayoutOpaque_t*;
using cublasLtMatmulPreference_t = cublasLtMatmulPreferenceOpaque_t*;

struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  std::size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
};

inline constexpr cublasStatus_t CUBLAS_STATUS_SUCCESS = 0;
inline constexpr cublasStatus_t CUBLAS_STATUS_NOT_INITIALIZED = 1;
inline constexpr cublasStatus_t CUBLAS_STATUS_ALLOC_FAILED = 3;
inline constexpr cublasStatus_t CUBLAS_STATUS_INVALID_VALUE = 7;
inline constexpr cublasStatus_t CUBLAS_STATUS_EXECUTION_FAILED = 13;
inline constexpr cublasStatus_t CUBLAS_STATUS_NOT_SUPPORTED = 15;

// cudaDataType_t
inline constexpr int CUDA_R_32F = 0;
inline constexpr int CUDA_R_64F = 1;
inline constexpr int CUDA_R_16F = 2;
inline constexpr int CUDA_R_8I = 3;
inline constexpr int CUDA_C_32F = 4;
inline constexpr int CUDA_C_64F = 5;
inline constexpr int CUDA_R_32I = 10;
inline constexpr int CUDA_R_16BF = 14;

// cublasComputeType_t
inline constexpr int CUBLAS_COMPUTE_32F = 68;
inline constexpr int CUBLAS_COMPUTE_64F = 70;
inline constexpr int CUBLAS_COMPUTE_32I = 72;
inline constexpr int CUBLAS_COMPUTE_32F_FAST_TF32 = 77;

// cublasOperation_t
inline constexpr int CUBLAS_OP_N = 0;
inline constexpr int CUBLAS_OP_T = 1;

// cublasLtMatmulDescAttributes_t
inline constexpr int CUBLASLT_MATMUL_DESC_TRANSA = 3;
inline constexpr int CUBLASLT_MATMUL_DESC_TRANSB = 4;
inline constexpr int CUBLASLT_MATMUL_DESC_EPILOGUE = 7;
inline constexpr int CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8;

// cublasLtEpilogue_t
inline constexpr unsigned CUBLASLT_EPILOGUE_DEFAULT = 1;
inline constexpr unsigned CUBLASLT_EPILOGUE_RELU = 2;
inline constexpr unsigned CUBLASLT_EPILOGUE_BIAS = 4;
inline constexpr unsigned CUBLASLT_EPILOGUE_RELU_BIAS = 6;
inline constexpr unsigned CUBLASLT_EPILOGUE_GELU = 32;
inline constexpr unsigned CUBLASLT_EPILOGUE_GELU_BIAS = 36;

// cublasLtMatrixLayoutAttribute_t
inline constexpr int CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5;
inline constexpr int CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6;

// cublasLtMatmulPreferenceAttributes_t
inline constexpr int CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1;
inline constexpr int CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3;
inline constexpr int CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5;
inline constexpr int CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6;
inline constexpr int CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7;
inline constexpr int CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8;

// cublasLtReductionScheme_t
inline constexpr unsigned CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2;

// name, result, parameters
#define PLAIT_CUBLASLT(X)                                                                       \
  X(cublasLtCreate, cublasStatus_t, cublasLtHandle_t*)                                          \
  X(cublasLtGetVersion, std::size_t)                                                            \
  X(cublasLtGetStatusName, const char*, cublasStatus_t)                                         \
  X(cublasLtMatmulDescCreate, cublasStatus_t, cublasLtMatmulDesc_t*, cublasComputeType_t,       \
    cudaDataType_t)                                                                             \
  X(cublasLtMatmulDescDestroy, cublasStatus_t, cublasLtMatmulDesc_t)                            \
  X(cublasLtMatmulDescSetAttribute, cublasStatus_t, cublasLtMatmulDesc_t, int, const void*,     \
    std::size_t)                                                                                \
  X(cublasLtMatrixLayoutCreate, cublasStatus_t, cublasLtMatrixLayout_t*, cudaDataType_t,        \
    std::uint64_t, std::uint64_t, std::int64_t)                                                 \
  X(cublasLtMatrixLayoutDestroy, cublasStatus_t, cublasLtMatrixLayout_t)                        \
  X(cublasLtMatrixLayoutSetAttribute, cublasStatus_t, cublasLtMatrixLayout_t, int, const void*, \
    std::size_t)                                                                                \
  X(cublasLtMatmulPreferenceCreate, cublasStatus_t, cublasLtMatmulPreference_t*)                \
  X(cublasLtMatmulPreferenceDestroy, cublasStatus_t, cublasLtMatmulPreference_t)                \
  X(cublasLtMatmulPreferenceSetAttribute, cublasStatus_t, cublasLtMatmulPreference_t, int,      \
    const void*, std::size_t)                                                                   \
  X(cublasLtMatmulAlgoGetHeuristic, cublasStatus_t, cublasLtHandle_t, cublasLtMatmulDesc_t,     \
    cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,                     \
    cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t*,  \
    int*)                                                                                       \
  X(cublasLtMatmul, cublasStatus_t, cublasLtHandle_t, cublasLtMatmulDesc_t, const void*,        \
    const void*, cublasLtMatrixLayout_t, const void*, cublasLtMatrixLayout_t, const void*,      \
    const void*, cublasLtMatrixLayout_t, void*, cublasLtMatrixLayout_t,                         \
    const cublasLtMatmulAlgo_t*, void*, std::size_t, CUstream)

struct CublasLtApi {
#define PLAIT_CUDA_MEMBER(name, result, ...) result (*name)(__VA_ARGS__) = nullptr;
  PLAIT_CUBLASLT(PLAIT_CUDA_MEMBER)
#undef PLAIT_CUDA_MEMBER
};

// nullptr where it is not found. It is looked for once, at the first call: it is a large library.
const CublasLtApi* cublaslt_api();
std::string why_no_cublaslt();

[[noreturn]] void throw_cublas_error(cublasStatus_t status, const char* action);
// Throws BackendError where a call has failed. action: what was to be done, "start a product".
inline void check_cublas(cublasStatus_t status, const char* action) {
  if (status != CUBLAS_STATUS_SUCCESS) [[unlikely]]
    throw_cublas_error(status, action);
}

}  // namespace plait::cuda
