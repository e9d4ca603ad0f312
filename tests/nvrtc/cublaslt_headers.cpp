// What plait declares of cuBLASLt is what its own header declares: signatures, numbers, layouts. It
// is compiled where that header is found; there is nothing to run.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "backends/cuda/cublaslt/api.h"
#include "plain_types.h"

namespace own {

#define DECLARED(name, ...) using name = decltype(plait::cuda::CublasLtApi::name);
PLAIT_CUBLASLT(DECLARED)
#undef DECLARED

}  // namespace own

#include <cublasLt.h>

namespace {

#define SAME(name, ...)                                                         \
  static_assert(std::is_same_v<PlainOf<own::name>, PlainOf<decltype(&::name)>>, \
                "the signature of " #name);
PLAIT_CUBLASLT(SAME)
#undef SAME

#define SAME(name) static_assert(int(plait::cuda::name) == int(::name))
SAME(CUBLAS_STATUS_SUCCESS);
SAME(CUBLAS_STATUS_NOT_INITIALIZED);
SAME(CUBLAS_STATUS_ALLOC_FAILED);
SAME(CUBLAS_STATUS_INVALID_VALUE);
SAME(CUBLAS_STATUS_EXECUTION_FAILED);
SAME(CUBLAS_STATUS_NOT_SUPPORTED);
SAME(CUDA_R_32F);
SAME(CUDA_R_64F);
SAME(CUDA_R_16F);
SAME(CUDA_R_8I);
SAME(CUDA_C_32F);
SAME(CUDA_C_64F);
SAME(CUDA_R_32I);
SAME(CUDA_R_16BF);
SAME(CUBLAS_COMPUTE_32F);
SAME(CUBLAS_COMPUTE_64F);
SAME(CUBLAS_COMPUTE_32I);
SAME(CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(CUBLAS_OP_N);
SAME(CUBLAS_OP_T);
SAME(CUBLASLT_MATMUL_DESC_TRANSA);
SAME(CUBLASLT_MATMUL_DESC_TRANSB);
SAME(CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(CUBLASLT_EPILOGUE_DEFAULT);
SAME(CUBLASLT_EPILOGUE_RELU);
SAME(CUBLASLT_EPILOGUE_BIAS);
SAME(CUBLASLT_EPILOGUE_RELU_BIAS);
SAME(CUBLASLT_EPILOGUE_GELU);
SAME(CUBLASLT_EPILOGUE_GELU_BIAS);
SAME(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
#undef SAME

#define SAME(member)                                                              \
  static_assert(offsetof(plait::cuda::cublasLtMatmulHeuristicResult_t, member) == \
                offsetof(::cublasLtMatmulHeuristicResult_t, member))
SAME(algo);
SAME(workspaceSize);
SAME(state);
SAME(wavesCount);
#undef SAME
static_assert(sizeof(plait::cuda::cublasLtMatmulHeuristicResult_t) ==
              sizeof(::cublasLtMatmulHeuristicResult_t));

}  // namespace
