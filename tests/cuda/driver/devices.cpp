// The stand-in's driver: devices, contexts, names of errors.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "state.h"

namespace cuda_standin {
namespace {

// Of a thread, with no destructor: what lives as long as the thread may still call.
constexpr std::size_t most_contexts = 64;
struct Contexts {
  CUcontext all[most_contexts];
  std::size_t count;
  CUcontext current() const { return count == 0 ? nullptr : all[count - 1]; }
};
thread_local constinit Contexts contexts{};

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

// Values of CUdevice_attribute; what is not here is 0.
struct Attribute {
  int which, value;
};
constexpr Attribute attributes[] = {
    {1, on_cpu::most_threads_of_block},       // of a block
    {2, on_cpu::most_threads_of_block},       // .. in x
    {3, on_cpu::most_threads_of_block},       // .. in y
    {4, 64},                                  // .. in z
    {5, 0x7fffffff},                          // blocks in x
    {6, 65535},                               // .. in y
    {7, 65535},                               // .. in z
    {8, int(on_cpu::static_shared_bytes)},    // of a block
    {10, 32},                                 // lanes of a warp
    {12, 65536},                              // registers of a block
    {13, 1'980'000},                          // kHz
    {16, on_cpu::num_multiprocessors},        //
    {19, 1},                                  // host memory is seen
    {31, 1},                                  // kernels side by side
    {36, 2'619'000},                          // kHz of memory
    {37, 5120},                               // bits of its bus
    {38, 50 << 20},                           // bytes of L2
    {39, on_cpu::threads_of_multiprocessor},  //
    {40, 3},                                  // engines for copies
    {41, 1},                                  // one address space
    {75, 9},                                  // compute capability, major
    {76, 0},                                  // .. minor
    {78, 1},                                  // priorities of streams
    {81, int(on_cpu::shared_bytes_of_multiprocessor)},
    {82, 65536},                                  // registers of a multiprocessor
    {90, 1},                                      // preemption
    {95, 1},                                      // cooperative launches
    {97, int(on_cpu::shared_bytes_of_block)},     // by choice
    {106, on_cpu::blocks_of_multiprocessor},      //
    {111, int(on_cpu::shared_bytes_for_system)},  // of each block
    {115, 1},                                     // pools of memory
};

int attribute(int which) {
  // Values that streams write and wait for.
  if (which == 92 || which == 93 || which == 122) return has_stream_values();
  for (const Attribute& attribute : attributes)
    if (attribute.which == which) return attribute.value;
  return 0;
}

bool is_device(CUdevice device) { return device >= 0 && device < num_devices; }

}  // namespace

bool has_stream_values() {
  static const char* const text = std::getenv("STANDIN_STREAM_VALUES");
  return text == nullptr || std::strcmp(text, "0") != 0;
}

CUcontext current_context() { return contexts.current(); }

STANDIN_EXPORT std::size_t standin_context_depth() { return contexts.count; }

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
  if (context == nullptr || contexts.count == most_contexts) return CUDA_ERROR_INVALID_CONTEXT;
  contexts.all[contexts.count++] = context;
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  STANDIN_CALL(Needs::start);
  if (contexts.count == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = contexts.current();
  --contexts.count;
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
  STANDIN_CALL(Needs::start);
  *context = current_context();
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  STANDIN_CALL(Needs::start);
  if (contexts.count > 0) --contexts.count;
  if (context != nullptr) contexts.all[contexts.count++] = context;
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
  STANDIN_CALL(Needs::context);
  *device = current_context()->device;
  return CUDA_SUCCESS;
}

}  // namespace cuda_standin
