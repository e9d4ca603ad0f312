// What plait declares of CUDA is what CUDA's own headers declare: names of symbols, signatures,
// numbers, layouts. It is compiled where those headers are found; there is nothing to run.
//
// plait's header comes first, since macros of CUDA's rename functions.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <string_view>

#include "backends/cuda/api.h"
#include "plain_types.h"

namespace own {

#define DECLARED(name, suffix, ...) using name##suffix = decltype(plait::cuda::DriverApi::name);
PLAIT_CUDA_DRIVER(DECLARED)
#undef DECLARED
#define DECLARED(name, ...) using name = decltype(plait::cuda::NvrtcApi::name);
PLAIT_CUDA_NVRTC(DECLARED)
#undef DECLARED
constexpr unsigned portable = plait::cuda::CU_MEMHOSTALLOC_PORTABLE;

}  // namespace own

#include <cuda.h>
#include <nvrtc.h>

namespace {

#define AS_EXPANDED(name) AS_TEXT(name)
#define AS_TEXT(name) #name
#define SAME(name, suffix, ...)                                                                 \
  static_assert(std::string_view(AS_EXPANDED(name)) == #name #suffix);                          \
  static_assert(std::is_same_v<PlainOf<own::name##suffix>, PlainOf<decltype(&::name##suffix)>>, \
                "the signature of " #name);
PLAIT_CUDA_DRIVER(SAME)
#undef SAME
#define SAME(name, ...)                                                         \
  static_assert(std::is_same_v<PlainOf<own::name>, PlainOf<decltype(&::name)>>, \
                "the signature of " #name);
PLAIT_CUDA_NVRTC(SAME)
#undef SAME

static_assert(own::portable == CU_MEMHOSTALLOC_PORTABLE);
template <class T>
constexpr bool are_same(const T& ours, auto theirs) {
  return ours == static_cast<T>(theirs);
}
#define SAME(name) static_assert(are_same(plait::cuda::name, ::name))
SAME(CUDA_SUCCESS);
SAME(CUDA_ERROR_INVALID_VALUE);
SAME(CUDA_ERROR_OUT_OF_MEMORY);
SAME(CUDA_ERROR_NO_DEVICE);
SAME(CUDA_ERROR_ECC_UNCORRECTABLE);
SAME(CUDA_ERROR_NVLINK_UNCORRECTABLE);
SAME(CUDA_ERROR_CONTAINED);
SAME(CUDA_ERROR_NOT_READY);
SAME(CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(CUDA_ERROR_LAUNCH_TIMEOUT);
SAME(CUDA_ERROR_CONTEXT_IS_DESTROYED);
SAME(CUDA_ERROR_ASSERT);
SAME(CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME(CUDA_ERROR_ILLEGAL_INSTRUCTION);
SAME(CUDA_ERROR_MISALIGNED_ADDRESS);
SAME(CUDA_ERROR_INVALID_ADDRESS_SPACE);
SAME(CUDA_ERROR_INVALID_PC);
SAME(CUDA_ERROR_LAUNCH_FAILED);
SAME(CUDA_ERROR_NOT_SUPPORTED);
SAME(CUDA_ERROR_UNKNOWN);
SAME(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
SAME(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SAME(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
SAME(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
SAME(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
SAME(CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(CU_MEM_HANDLE_TYPE_NONE);
SAME(CU_MEM_LOCATION_TYPE_DEVICE);
SAME(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
SAME(CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
SAME(CU_MEMPOOL_ATTR_USED_MEM_HIGH);
SAME(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(CU_STREAM_NON_BLOCKING);
SAME(CU_STREAM_WAIT_VALUE_GEQ);
SAME(CU_STREAM_WRITE_VALUE_DEFAULT);
SAME(CU_EVENT_DISABLE_TIMING);
SAME(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(CU_STREAM_CAPTURE_MODE_GLOBAL);
SAME(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(CU_STREAM_CAPTURE_STATUS_NONE);
SAME(CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME(CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SAME(CU_GRAPH_NODE_TYPE_KERNEL);
SAME(CU_GRAPH_EXEC_UPDATE_SUCCESS);
SAME(NVRTC_SUCCESS);
SAME(NVRTC_ERROR_COMPILATION);
#undef SAME

#define SAME(type, member) \
  static_assert(offsetof(plait::cuda::type, member) == offsetof(::type, member))
static_assert(sizeof(plait::cuda::CUmemLocation) == sizeof(::CUmemLocation));
SAME(CUmemLocation, type);
SAME(CUmemLocation, id);
static_assert(sizeof(plait::cuda::CUmemPoolProps) == sizeof(::CUmemPoolProps));
SAME(CUmemPoolProps, allocType);
SAME(CUmemPoolProps, handleTypes);
SAME(CUmemPoolProps, location);
SAME(CUmemPoolProps, win32SecurityAttributes);
SAME(CUmemPoolProps, maxSize);
SAME(CUmemPoolProps, usage);
SAME(CUmemPoolProps, reserved);
static_assert(sizeof(plait::cuda::CUDA_KERNEL_NODE_PARAMS) == sizeof(::CUDA_KERNEL_NODE_PARAMS));
SAME(CUDA_KERNEL_NODE_PARAMS, func);
SAME(CUDA_KERNEL_NODE_PARAMS, gridDimX);
SAME(CUDA_KERNEL_NODE_PARAMS, gridDimZ);
SAME(CUDA_KERNEL_NODE_PARAMS, blockDimX);
SAME(CUDA_KERNEL_NODE_PARAMS, blockDimZ);
SAME(CUDA_KERNEL_NODE_PARAMS, sharedMemBytes);
SAME(CUDA_KERNEL_NODE_PARAMS, kernelParams);
SAME(CUDA_KERNEL_NODE_PARAMS, extra);
SAME(CUDA_KERNEL_NODE_PARAMS, kern);
SAME(CUDA_KERNEL_NODE_PARAMS, ctx);
static_assert(sizeof(plait::cuda::CUgraphExecUpdateResultInfo) ==
              sizeof(::CUgraphExecUpdateResultInfo));
SAME(CUgraphExecUpdateResultInfo, result);
SAME(CUgraphExecUpdateResultInfo, errorNode);
SAME(CUgraphExecUpdateResultInfo, errorFromNode);

}  // namespace
