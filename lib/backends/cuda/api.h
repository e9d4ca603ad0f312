// What plait calls of CUDA's driver and of NVRTC, declared here and found at run time: neither
// headers nor a link are needed. tests/nvrtc/api_headers.cpp compares all of it with CUDA's own
// headers, whose names these are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace plait::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUkernel = struct CUkern_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;

inline constexpr CUresult CUDA_SUCCESS = 0;
inline constexpr CUresult CUDA_ERROR_INVALID_VALUE = 1;
inline constexpr CUresult CUDA_ERROR_OUT_OF_MEMORY = 2;
inline constexpr CUresult CUDA_ERROR_NO_DEVICE = 100;
inline constexpr CUresult CUDA_ERROR_ECC_UNCORRECTABLE = 214;
inline constexpr CUresult CUDA_ERROR_NVLINK_UNCORRECTABLE = 220;
inline constexpr CUresult CUDA_ERROR_CONTAINED = 226;
inline constexpr CUresult CUDA_ERROR_NOT_READY = 600;
inline constexpr CUresult CUDA_ERROR_ILLEGAL_ADDRESS = 700;
inline constexpr CUresult CUDA_ERROR_LAUNCH_TIMEOUT = 702;
inline constexpr CUresult CUDA_ERROR_CONTEXT_IS_DESTROYED = 709;
inline constexpr CUresult CUDA_ERROR_ASSERT = 710;
inline constexpr CUresult CUDA_ERROR_HARDWARE_STACK_ERROR = 714;
inline constexpr CUresult CUDA_ERROR_ILLEGAL_INSTRUCTION = 715;
inline constexpr CUresult CUDA_ERROR_MISALIGNED_ADDRESS = 716;
inline constexpr CUresult CUDA_ERROR_INVALID_ADDRESS_SPACE = 717;
inline constexpr CUresult CUDA_ERROR_INVALID_PC = 718;
inline constexpr CUresult CUDA_ERROR_LAUNCH_FAILED = 719;
inline constexpr CUresult CUDA_ERROR_NOT_SUPPORTED = 801;
inline constexpr CUresult CUDA_ERROR_UNKNOWN = 999;

// CUdevice_attribute
inline constexpr int CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16;
inline constexpr int CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39;
inline constexpr int CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41;
inline constexpr int CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75;
inline constexpr int CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76;
inline constexpr int CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81;
inline constexpr int CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH = 95;
inline constexpr int CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97;
inline constexpr int CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115;
inline constexpr int CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS = 122;

inline constexpr int CU_MEM_ALLOCATION_TYPE_PINNED = 1;  // CUmemAllocationType
inline constexpr int CU_MEM_HANDLE_TYPE_NONE = 0;        // CUmemAllocationHandleType
inline constexpr int CU_MEM_LOCATION_TYPE_DEVICE = 1;    // CUmemLocationType
// CUmemPool_attribute
inline constexpr int CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4;
inline constexpr int CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5;
inline constexpr int CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7;
inline constexpr int CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8;
inline constexpr unsigned CU_MEMHOSTALLOC_PORTABLE = 1;
inline constexpr int CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9;  // CUpointer_attribute

inline constexpr unsigned CU_STREAM_NON_BLOCKING = 1;         // CUstream_flags
inline constexpr unsigned CU_STREAM_WAIT_VALUE_GEQ = 0;       // CUstreamWaitValue_flags
inline constexpr unsigned CU_STREAM_WRITE_VALUE_DEFAULT = 0;  // CUstreamWriteValue_flags
inline constexpr unsigned CU_EVENT_DISABLE_TIMING = 2;        // CUevent_flags

// CUfunction_attribute
inline constexpr int CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0;
inline constexpr int CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1;
inline constexpr int CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3;
inline constexpr int CU_FUNC_ATTRIBUTE_NUM_REGS = 4;
inline constexpr int CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8;

inline constexpr int CU_STREAM_CAPTURE_MODE_GLOBAL = 0;  // CUstreamCaptureMode
inline constexpr int CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1;
inline constexpr int CU_STREAM_CAPTURE_MODE_RELAXED = 2;
inline constexpr int CU_STREAM_CAPTURE_STATUS_NONE = 0;  // CUstreamCaptureStatus
inline constexpr int CU_STREAM_CAPTURE_STATUS_ACTIVE = 1;
inline constexpr int CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2;
inline constexpr int CU_GRAPH_NODE_TYPE_KERNEL = 0;     // CUgraphNodeType
inline constexpr int CU_GRAPH_EXEC_UPDATE_SUCCESS = 0;  // CUgraphExecUpdateResult

struct CUmemLocation {
  int type, id;
};
struct CUmemPoolProps {
  int allocType, handleTypes;
  CUmemLocation location;
  void* win32SecurityAttributes;
  std::size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
};
struct CUDA_KERNEL_NODE_PARAMS {
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  void** kernelParams;
  void** extra;
  CUkernel kern;
  CUcontext ctx;
};
struct CUDA_MEMSET_NODE_PARAMS {
  CUdeviceptr dst;
  std::size_t pitch;
  unsigned value, elementSize;
  std::size_t width, height;
};
struct CUgraphEdgeData {
  unsigned char from_port, to_port, type, reserved[5];
};
struct CUgraphExecUpdateResultInfo {
  int result;
  CUgraphNode errorNode, errorFromNode;
};

// name, what the library's symbol has behind it, parameters; the result is a CUresult
#define PLAIT_CUDA_DRIVER(X)                                                                       \
  X(cuInit, , unsigned)                                                                            \
  X(cuDriverGetVersion, , int*)                                                                    \
  X(cuGetErrorName, , CUresult, const char**)                                                      \
  X(cuGetErrorString, , CUresult, const char**)                                                    \
  X(cuDeviceGetCount, , int*)                                                                      \
  X(cuDeviceGet, , CUdevice*, int)                                                                 \
  X(cuDeviceGetName, , char*, int, CUdevice)                                                       \
  X(cuDeviceGetAttribute, , int*, int, CUdevice)                                                   \
  X(cuDeviceTotalMem, _v2, std::size_t*, CUdevice)                                                 \
  X(cuDevicePrimaryCtxRetain, , CUcontext*, CUdevice)                                              \
  X(cuCtxPushCurrent, _v2, CUcontext)                                                              \
  X(cuCtxPopCurrent, _v2, CUcontext*)                                                              \
  X(cuCtxGetCurrent, , CUcontext*)                                                                 \
  X(cuMemPoolCreate, , CUmemoryPool*, const CUmemPoolProps*)                                       \
  X(cuMemPoolSetAttribute, , CUmemoryPool, int, void*)                                             \
  X(cuMemPoolGetAttribute, , CUmemoryPool, int, void*)                                             \
  X(cuMemPoolTrimTo, , CUmemoryPool, std::size_t)                                                  \
  X(cuMemAllocFromPoolAsync, , CUdeviceptr*, std::size_t, CUmemoryPool, CUstream)                  \
  X(cuMemFreeAsync, , CUdeviceptr, CUstream)                                                       \
  X(cuMemHostAlloc, , void**, std::size_t, unsigned)                                               \
  X(cuMemFreeHost, , void*)                                                                        \
  X(cuMemGetInfo, _v2, std::size_t*, std::size_t*)                                                 \
  X(cuMemcpyHtoDAsync, _v2, CUdeviceptr, const void*, std::size_t, CUstream)                       \
  X(cuMemcpyDtoHAsync, _v2, void*, CUdeviceptr, std::size_t, CUstream)                             \
  X(cuMemcpyDtoDAsync, _v2, CUdeviceptr, CUdeviceptr, std::size_t, CUstream)                       \
  X(cuMemcpyPeerAsync, , CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t, CUstream)    \
  X(cuMemsetD8Async, , CUdeviceptr, unsigned char, std::size_t, CUstream)                          \
  X(cuStreamCreateWithPriority, , CUstream*, unsigned, int)                                        \
  X(cuStreamDestroy, _v2, CUstream)                                                                \
  X(cuStreamSynchronize, , CUstream)                                                               \
  X(cuStreamQuery, , CUstream)                                                                     \
  X(cuStreamWaitEvent, , CUstream, CUevent, unsigned)                                              \
  X(cuStreamWriteValue64, _v2, CUstream, CUdeviceptr, std::uint64_t, unsigned)                     \
  X(cuStreamWaitValue64, _v2, CUstream, CUdeviceptr, std::uint64_t, unsigned)                      \
  X(cuEventCreate, , CUevent*, unsigned)                                                           \
  X(cuEventRecord, , CUevent, CUstream)                                                            \
  X(cuEventQuery, , CUevent)                                                                       \
  X(cuEventSynchronize, , CUevent)                                                                 \
  X(cuEventElapsedTime, _v2, float*, CUevent, CUevent)                                             \
  X(cuEventDestroy, _v2, CUevent)                                                                  \
  X(cuModuleLoadData, , CUmodule*, const void*)                                                    \
  X(cuModuleUnload, , CUmodule)                                                                    \
  X(cuModuleGetFunction, , CUfunction*, CUmodule, const char*)                                     \
  X(cuFuncSetAttribute, , CUfunction, int, int)                                                    \
  X(cuFuncGetAttribute, , int*, int, CUfunction)                                                   \
  X(cuFuncGetParamInfo, , CUfunction, std::size_t, std::size_t*, std::size_t*)                     \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, , int*, CUfunction, int, std::size_t)             \
  X(cuLaunchKernel, , CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,      \
    unsigned, CUstream, void**, void**)                                                            \
  X(cuLaunchCooperativeKernel, , CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,     \
    unsigned, unsigned, CUstream, void**)                                                          \
  X(cuStreamBeginCapture, _v2, CUstream, int)                                                      \
  X(cuStreamEndCapture, , CUstream, CUgraph*)                                                      \
  X(cuStreamIsCapturing, , CUstream, int*)                                                         \
  X(cuStreamGetCaptureInfo, _v3, CUstream, int*, std::uint64_t*, CUgraph*, const CUgraphNode**,    \
    const CUgraphEdgeData**, std::size_t*)                                                         \
  X(cuGraphInstantiateWithFlags, , CUgraphExec*, CUgraph, unsigned long long)                      \
  X(cuGraphLaunch, , CUgraphExec, CUstream)                                                        \
  X(cuGraphExecKernelNodeSetParams, _v2, CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS*) \
  X(cuGraphExecMemsetNodeSetParams, , CUgraphExec, CUgraphNode, const CUDA_MEMSET_NODE_PARAMS*,    \
    CUcontext)                                                                                     \
  X(cuGraphGetNodes, , CUgraph, CUgraphNode*, std::size_t*)                                        \
  X(cuGraphNodeGetType, , CUgraphNode, int*)                                                       \
  X(cuGraphKernelNodeGetParams, _v2, CUgraphNode, CUDA_KERNEL_NODE_PARAMS*)                        \
  X(cuGraphDestroy, , CUgraph)                                                                     \
  X(cuGraphExecDestroy, , CUgraphExec)                                                             \
  X(cuGraphExecUpdate, _v2, CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*)                    \
  X(cuPointerGetAttribute, , void*, int, CUdeviceptr)

struct DriverApi {
#define PLAIT_CUDA_MEMBER(name, suffix, ...) CUresult (*name)(__VA_ARGS__) = nullptr;
  PLAIT_CUDA_DRIVER(PLAIT_CUDA_MEMBER)
#undef PLAIT_CUDA_MEMBER
  int num_devices = 0;
};

// The driver, initialised, with at least one device; nullptr where there is none. It is looked for
// once.
const DriverApi* driver_api();
std::string why_no_driver();  // "libcuda.so.1 is not installed"

using nvrtcResult = int;
using nvrtcProgram = struct _nvrtcProgram*;
inline constexpr nvrtcResult NVRTC_SUCCESS = 0;
inline constexpr nvrtcResult NVRTC_ERROR_COMPILATION = 6;

// name, result, parameters
#define PLAIT_CUDA_NVRTC(X)                                                        \
  X(nvrtcVersion, nvrtcResult, int*, int*)                                         \
  X(nvrtcGetErrorString, const char*, nvrtcResult)                                 \
  X(nvrtcCreateProgram, nvrtcResult, nvrtcProgram*, const char*, const char*, int, \
    const char* const*, const char* const*)                                        \
  X(nvrtcDestroyProgram, nvrtcResult, nvrtcProgram*)                               \
  X(nvrtcCompileProgram, nvrtcResult, nvrtcProgram, int, const char* const*)       \
  X(nvrtcGetCUBINSize, nvrtcResult, nvrtcProgram, std::size_t*)                    \
  X(nvrtcGetCUBIN, nvrtcResult, nvrtcProgram, char*)                               \
  X(nvrtcGetProgramLogSize, nvrtcResult, nvrtcProgram, std::size_t*)               \
  X(nvrtcGetProgramLog, nvrtcResult, nvrtcProgram, char*)

struct NvrtcApi {
#define PLAIT_CUDA_MEMBER(name, result, ...) result (*name)(__VA_ARGS__) = nullptr;
  PLAIT_CUDA_NVRTC(PLAIT_CUDA_MEMBER)
#undef PLAIT_CUDA_MEMBER
  int major = 0, minor = 0;
  std::string folder;  // that it was loaded from
};

// nullptr where it is not found. It is looked for once, at the first call: that takes a while.
const NvrtcApi* nvrtc_api();
std::string why_no_nvrtc();

// Whether a result means that the context, and with it the device, is of no use any more.
bool is_fatal(CUresult result);
// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
std::string name_of(CUresult result);
[[noreturn]] void throw_error(CUresult result, const char* action);
// Throws BackendError where a call has failed. action: what was to be done, "start a kernel".
inline void check(CUresult result, const char* action) {
  if (result != CUDA_SUCCESS) [[unlikely]]
    throw_error(result, action);
}

}  // namespace plait::cuda
