// What plait calls of cuDNN's graph interface, declared here and found at run time, as ../api.h
// does for the driver. tests/nvrtc/cudnn_headers.cpp compares all of it with cuDNN's own header,
// whose names these are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/api.h"

namespace plait::cuda {

using cudnnStatus_t = int;
using cudnnHandle_t = struct cudnnContext*;
using cudnnBackendDescriptor_t = void*;

inline constexpr cudnnStatus_t CUDNN_STATUS_SUCCESS = 0;
inline constexpr cudnnStatus_t CUDNN_STATUS_NOT_INITIALIZED = 1001;
inline constexpr cudnnStatus_t CUDNN_STATUS_BAD_PARAM = 2000;
inline constexpr cudnnStatus_t CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED = 2004;
inline constexpr cudnnStatus_t CUDNN_STATUS_NOT_SUPPORTED = 3000;
inline constexpr cudnnStatus_t CUDNN_STATUS_INTERNAL_ERROR = 4000;
inline constexpr cudnnStatus_t CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED = 4004;
inline constexpr cudnnStatus_t CUDNN_STATUS_EXECUTION_FAILED = 5000;
inline constexpr cudnnStatus_t CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER = 5001;

// cudnnDataType_t
inline constexpr int CUDNN_DATA_FLOAT = 0;
inline constexpr int CUDNN_DATA_DOUBLE = 1;
inline constexpr int CUDNN_DATA_HALF = 2;
inline constexpr int CUDNN_DATA_INT32 = 4;
inline constexpr int CUDNN_DATA_BFLOAT16 = 9;
inline constexpr int CUDNN_DATA_BOOLEAN = 11;

inline constexpr int CUDNN_CROSS_CORRELATION = 1;  // cudnnConvolutionMode_t
inline constexpr int CUDNN_PROPAGATE_NAN = 1;      // cudnnNanPropagation_t

// cudnnPointwiseMode_t
inline constexpr int CUDNN_POINTWISE_ADD = 0;
inline constexpr int CUDNN_POINTWISE_MUL = 1;
inline constexpr int CUDNN_POINTWISE_DIV = 6;
inline constexpr int CUDNN_POINTWISE_SUB = 9;
inline constexpr int CUDNN_POINTWISE_EXP = 13;
inline constexpr int CUDNN_POINTWISE_LOG = 15;
inline constexpr int CUDNN_POINTWISE_RELU_FWD = 100;
inline constexpr int CUDNN_POINTWISE_CMP_GE = 303;
inline constexpr int CUDNN_POINTWISE_GEN_INDEX = 501;
inline constexpr int CUDNN_POINTWISE_BINARY_SELECT = 601;

// cudnnReduceTensorOp_t
inline constexpr int CUDNN_REDUCE_TENSOR_ADD = 0;
inline constexpr int CUDNN_REDUCE_TENSOR_MAX = 3;

// cudnnBackendHeurMode_t
inline constexpr int CUDNN_HEUR_MODE_FALLBACK = 2;
inline constexpr int CUDNN_HEUR_MODE_A = 3;

// cudnnBackendNumericalNote_t
inline constexpr int CUDNN_NUMERICAL_NOTE_TENSOR_CORE = 0;
inline constexpr int CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS = 1;
inline constexpr int CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION = 2;
inline constexpr int CUDNN_NUMERICAL_NOTE_FFT = 3;
inline constexpr int CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC = 4;
inline constexpr int CUDNN_NUMERICAL_NOTE_WINOGRAD = 5;

inline constexpr int CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION = 0;  // cudnnBackendBehaviorNote_t

// cudnnBackendAttributeType_t
inline constexpr int CUDNN_TYPE_HANDLE = 0;
inline constexpr int CUDNN_TYPE_DATA_TYPE = 1;
inline constexpr int CUDNN_TYPE_INT64 = 3;
inline constexpr int CUDNN_TYPE_BOOLEAN = 2;
inline constexpr int CUDNN_TYPE_FLOAT = 4;
inline constexpr int CUDNN_TYPE_DOUBLE = 5;
inline constexpr int CUDNN_TYPE_VOID_PTR = 6;
inline constexpr int CUDNN_TYPE_CONVOLUTION_MODE = 7;
inline constexpr int CUDNN_TYPE_HEUR_MODE = 8;
inline constexpr int CUDNN_TYPE_NAN_PROPOGATION = 10;
inline constexpr int CUDNN_TYPE_NUMERICAL_NOTE = 11;
inline constexpr int CUDNN_TYPE_POINTWISE_MODE = 14;
inline constexpr int CUDNN_TYPE_BACKEND_DESCRIPTOR = 15;
inline constexpr int CUDNN_TYPE_REDUCTION_OPERATOR_TYPE = 18;
inline constexpr int CUDNN_TYPE_BEHAVIOR_NOTE = 19;
inline constexpr int CUDNN_TYPE_CHAR = 24;

// cudnnBackendDescriptorType_t
inline constexpr int CUDNN_BACKEND_POINTWISE_DESCRIPTOR = 0;
inline constexpr int CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR = 1;
inline constexpr int CUDNN_BACKEND_ENGINE_DESCRIPTOR = 2;
inline constexpr int CUDNN_BACKEND_ENGINECFG_DESCRIPTOR = 3;
inline constexpr int CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR = 4;
inline constexpr int CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR = 5;
inline constexpr int CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR = 10;
inline constexpr int CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR = 11;
inline constexpr int CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR = 12;
inline constexpr int CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR = 13;
inline constexpr int CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR = 15;
inline constexpr int CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR = 16;
inline constexpr int CUDNN_BACKEND_TENSOR_DESCRIPTOR = 17;
inline constexpr int CUDNN_BACKEND_MATMUL_DESCRIPTOR = 18;
inline constexpr int CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR = 19;
inline constexpr int CUDNN_BACKEND_REDUCTION_DESCRIPTOR = 21;
inline constexpr int CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR = 22;
inline constexpr int CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR = 31;
inline constexpr int CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR = 38;

// cudnnBackendAttributeName_t
inline constexpr int CUDNN_ATTR_POINTWISE_MODE = 0;
inline constexpr int CUDNN_ATTR_POINTWISE_MATH_PREC = 1;
inline constexpr int CUDNN_ATTR_POINTWISE_NAN_PROPAGATION = 2;
inline constexpr int CUDNN_ATTR_POINTWISE_AXIS = 9;
inline constexpr int CUDNN_ATTR_CONVOLUTION_COMP_TYPE = 100;
inline constexpr int CUDNN_ATTR_CONVOLUTION_CONV_MODE = 101;
inline constexpr int CUDNN_ATTR_CONVOLUTION_DILATIONS = 102;
inline constexpr int CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES = 103;
inline constexpr int CUDNN_ATTR_CONVOLUTION_POST_PADDINGS = 104;
inline constexpr int CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS = 105;
inline constexpr int CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS = 106;
inline constexpr int CUDNN_ATTR_ENGINEHEUR_MODE = 200;
inline constexpr int CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH = 201;
inline constexpr int CUDNN_ATTR_ENGINEHEUR_RESULTS = 202;
inline constexpr int CUDNN_ATTR_ENGINEHEUR_DEVICEPROP = 204;
inline constexpr int CUDNN_ATTR_ENGINECFG_ENGINE = 300;
inline constexpr int CUDNN_ATTR_EXECUTION_PLAN_HANDLE = 400;
inline constexpr int CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG = 401;
inline constexpr int CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE = 402;
inline constexpr int CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP = 407;
inline constexpr int CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA = 700;
inline constexpr int CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA = 701;
inline constexpr int CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC = 702;
inline constexpr int CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W = 703;
inline constexpr int CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X = 704;
inline constexpr int CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y = 705;
inline constexpr int CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA = 706;
inline constexpr int CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA = 707;
inline constexpr int CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC = 708;
inline constexpr int CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W = 709;
inline constexpr int CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX = 710;
inline constexpr int CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY = 711;
inline constexpr int CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA = 712;
inline constexpr int CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA = 713;
inline constexpr int CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC = 714;
inline constexpr int CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW = 715;
inline constexpr int CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X = 716;
inline constexpr int CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY = 717;
inline constexpr int CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR = 750;
inline constexpr int CUDNN_ATTR_OPERATION_POINTWISE_XDESC = 751;
inline constexpr int CUDNN_ATTR_OPERATION_POINTWISE_BDESC = 752;
inline constexpr int CUDNN_ATTR_OPERATION_POINTWISE_YDESC = 753;
inline constexpr int CUDNN_ATTR_OPERATION_POINTWISE_TDESC = 758;
inline constexpr int CUDNN_ATTR_OPERATIONGRAPH_HANDLE = 800;
inline constexpr int CUDNN_ATTR_OPERATIONGRAPH_OPS = 801;
inline constexpr int CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT = 900;
inline constexpr int CUDNN_ATTR_TENSOR_DATA_TYPE = 901;
inline constexpr int CUDNN_ATTR_TENSOR_DIMENSIONS = 902;
inline constexpr int CUDNN_ATTR_TENSOR_STRIDES = 903;
inline constexpr int CUDNN_ATTR_TENSOR_UNIQUE_ID = 906;
inline constexpr int CUDNN_ATTR_TENSOR_IS_VIRTUAL = 907;
inline constexpr int CUDNN_ATTR_TENSOR_IS_BY_VALUE = 908;
inline constexpr int CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS = 1000;
inline constexpr int CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS = 1001;
inline constexpr int CUDNN_ATTR_VARIANT_PACK_WORKSPACE = 1003;
inline constexpr int CUDNN_ATTR_ENGINE_GLOBAL_INDEX = 1301;
inline constexpr int CUDNN_ATTR_ENGINE_NUMERICAL_NOTE = 1303;
inline constexpr int CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE = 1305;
inline constexpr int CUDNN_ATTR_MATMUL_COMP_TYPE = 1500;
inline constexpr int CUDNN_ATTR_OPERATION_MATMUL_ADESC = 1520;
inline constexpr int CUDNN_ATTR_OPERATION_MATMUL_BDESC = 1521;
inline constexpr int CUDNN_ATTR_OPERATION_MATMUL_CDESC = 1522;
inline constexpr int CUDNN_ATTR_OPERATION_MATMUL_DESC = 1523;
inline constexpr int CUDNN_ATTR_REDUCTION_OPERATOR = 1600;
inline constexpr int CUDNN_ATTR_REDUCTION_COMP_TYPE = 1601;
inline constexpr int CUDNN_ATTR_OPERATION_REDUCTION_XDESC = 1610;
inline constexpr int CUDNN_ATTR_OPERATION_REDUCTION_YDESC = 1611;
inline constexpr int CUDNN_ATTR_OPERATION_REDUCTION_DESC = 1612;
inline constexpr int CUDNN_ATTR_OPERATION_RESHAPE_XDESC = 2200;
inline constexpr int CUDNN_ATTR_OPERATION_RESHAPE_YDESC = 2201;
inline constexpr int CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION = 2702;

// name, result, parameters
#define PLAIT_CUDNN(X)                                                                         \
  X(cudnnGetVersion, std::size_t)                                                              \
  X(cudnnGetErrorString, const char*, cudnnStatus_t)                                           \
  X(cudnnGetLastErrorString, void, char*, std::size_t)                                         \
  X(cudnnCreate, cudnnStatus_t, cudnnHandle_t*)                                                \
  X(cudnnSetStream, cudnnStatus_t, cudnnHandle_t, CUstream)                                    \
  X(cudnnBackendCreateDescriptor, cudnnStatus_t, int, cudnnBackendDescriptor_t*)               \
  X(cudnnBackendDestroyDescriptor, cudnnStatus_t, cudnnBackendDescriptor_t)                    \
  X(cudnnBackendFinalize, cudnnStatus_t, cudnnBackendDescriptor_t)                             \
  X(cudnnBackendSetAttribute, cudnnStatus_t, cudnnBackendDescriptor_t, int, int, std::int64_t, \
    const void*)                                                                               \
  X(cudnnBackendGetAttribute, cudnnStatus_t, cudnnBackendDescriptor_t, int, int, std::int64_t, \
    std::int64_t*, void*)                                                                      \
  X(cudnnBackendExecute, cudnnStatus_t, cudnnHandle_t, cudnnBackendDescriptor_t,               \
    cudnnBackendDescriptor_t)

struct CudnnApi {
#define PLAIT_CUDA_MEMBER(name, result, ...) result (*name)(__VA_ARGS__) = nullptr;
  PLAIT_CUDNN(PLAIT_CUDA_MEMBER)
#undef PLAIT_CUDA_MEMBER
};

// nullptr where it is not found. It is looked for once, at the first call: it is a large library.
const CudnnApi* cudnn_api();
std::string why_no_cudnn();

// "CUDNN_STATUS_NOT_SUPPORTED (no engine has such strides)": with what the library says of the
// last failure of this thread.
std::string name_of_cudnn(cudnnStatus_t status);
[[noreturn]] void throw_cudnn_error(cudnnStatus_t status, const char* action);
// Throws BackendError where a call has failed. action: what was to be done, "start a convolution".
inline void check_cudnn(cudnnStatus_t status, const char* action) {
  if (status != CUDNN_STATUS_SUCCESS) [[unlikely]]
    throw_cudnn_error(status, action);
}

}  // namespace plait::cuda
