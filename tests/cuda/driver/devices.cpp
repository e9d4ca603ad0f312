// The stand-in's driver: devices, contexts, names of errors.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstring>

#include "state.h"

namespace cuda_standin {
namespace {

thread_local std::vector<CUcontext> contexts;

struct ErrorName {
  CUresult code;
  const char *name, *text;
};
constexpr ErrorName error_names[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "operation would merge two captures"},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not ended in the same stream"},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work"},
    {907, "CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event of a capture"},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "capture was not ended by its thread"},
    {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "the graph update was not performed"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const ErrorName* find_error(CUresult code) {
  for (const ErrorName& error : error_names)
    if (error.code == code) return &error;
  return nullptr;
}

// What a CUdevice_attribute is; 0 for what the stand-in does not have.
int attribute(int which) {
  switch (which) {
    case 1:  // threads of a block
    case 2:  // .. in x
    case 3:
      return on_cpu::most_threads_of_block;  // .. in y
    case 4:
      return 64;  // .. in z
    case 5:
      return 0x7fffffff;  // blocks in x
    case 6:               // .. in y
    case 7:
      return 65535;  // .. in z
    case 8:
      return int(on_cpu::static_shared_bytes);  // of a block
    case 10:
      return 32;  // lanes of a warp
    case 12:
      return 65536;  // registers of a block
    case 13:
      return 1'980'000;  // kHz
    case 16:
      return on_cpu::num_multiprocessors;
    case 19:
      return 1;  // host memory is seen
    case 31:
      return 1;  // kernels side by side
    case 36:
      return 2'619'000;  // kHz of memory
    case 37:
      return 5120;  // bits of its bus
    case 38:
      return 50 << 20;  // bytes of L2
    case 39:
      return on_cpu::threads_of_multiprocessor;
    case 40:
      return 3;  // copy engines
    case 41:
      return 1;  // one address space
    case 75:
      return 9;  // capability, major
    case 76:
      return 0;  // .. minor
    case 78:
      return 1;  // priorities
    case 81:
      return int(on_cpu::shared_bytes_of_multiprocessor);
    case 82:
      return 65536;  // registers of an SM
    case 90:
      return 1;  // preemption
    case 92:     // writes and waits
    case 93:
    case 95:
      return 1;  // cooperative launches
    case 97:
      return int(on_cpu::shared_bytes_of_block);
    case 106:
      return on_cpu::blocks_of_multiprocessor;
    case 111:
      return int(on_cpu::shared_bytes_for_system);
    case 115:  // pools
    case 122:
      return 1;  // .. of 64 bits
    default:
      return 0;
  }
}

bool is_device(CUdevice device) { return device >= 0 && device < num_devices; }

}  // namespace

CUcontext current_context() { return contexts.empty() ? nullptr : contexts.back(); }

STANDIN_EXPORT std::size_t standin_context_depth() { return contexts.size(); }

STANDIN_EXPORT CUresult cuDriverGetVersion(int* version) {
  STANDIN_CALL(Needs::nothing);
  *version = 13000;
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuGetErrorName(CUresult code, const char** name) {
  const ErrorName* error = find_error(code);
  *name = error != nullptr ? error->name : nullptr;
  return error != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

STANDIN_EXPORT CUresult cuGetErrorString(CUresult code, const char** text) {
  const ErrorName* error = find_error(code);
  *text = error != nullptr ? error->text : nullptr;
  return error != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

STANDIN_EXPORT CUresult cuDeviceGetCount(int* count) {
  STANDIN_CALL(Needs::start);
  *count = num_devices;
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  STANDIN_CALL(Needs::start);
  if (!is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  STANDIN_CALL(Needs::start);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(name, std::size_t(length), "stand-in of a GPU");
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuDeviceGetAttribute(int* value, int which, CUdevice device) {
  STANDIN_CALL(Needs::start);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr || which < 1 || which > 147) return CUDA_ERROR_INVALID_VALUE;
  *value = attribute(which);
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  STANDIN_CALL(Needs::start);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = state().memory;
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  STANDIN_CALL(Needs::start);
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *context = &state().contexts[device];
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  STANDIN_CALL(Needs::start);
  return is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

// Contexts come and go on lost devices too, so that the stack can be put right.
STANDIN_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
  STANDIN_CALL(Needs::start);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  contexts.push_back(context);
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  STANDIN_CALL(Needs::start);
  if (contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = contexts.back();
  contexts.pop_back();
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
  STANDIN_CALL(Needs::start);
  *context = current_context();
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  STANDIN_CALL(Needs::start);
  if (!contexts.empty()) contexts.pop_back();
  if (context != nullptr) contexts.push_back(context);
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
  STANDIN_CALL(Needs::context);
  *device = current_context()->device;
  return CUDA_SUCCESS;
}

}  // namespace cuda_standin
