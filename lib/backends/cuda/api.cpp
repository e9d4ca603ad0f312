// See api.h.
// SPDX-License-Identifier: Apache-2.0
#include "api.h"

#include <plait/base/error.h>

#include "library.h"

namespace plait::cuda {
namespace {

constexpr int oldest_driver = 13000;  // runs what NVRTC of CUDA 13 makes

// "13.0", from 13000.
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

template <class Api>
struct Loaded {
  Api api;
  std::string failure;  // empty: it can be used
};

std::string name_in(const DriverApi& api, CUresult result) {
  const char* name = nullptr;
  if (api.cuGetErrorName && api.cuGetErrorName(result, &name) == CUDA_SUCCESS && name) return name;
  return "error " + std::to_string(result);
}

// What the table needs and the library does not have.
std::string fill(DriverApi& api, const Library& library) {
  std::string missing;
#define PLAIT_CUDA_FIND(name, suffix, ...)                                      \
  api.name = reinterpret_cast<decltype(api.name)>(library.find(#name #suffix)); \
  if (!api.name && missing.empty()) missing = #name #suffix;
  PLAIT_CUDA_DRIVER(PLAIT_CUDA_FIND)
#undef PLAIT_CUDA_FIND
  return missing;
}

std::string fill(NvrtcApi& api, const Library& library) {
  std::string missing;
#define PLAIT_CUDA_FIND(name, ...)                                      \
  api.name = reinterpret_cast<decltype(api.name)>(library.find(#name)); \
  if (!api.name && missing.empty()) missing = #name;
  PLAIT_CUDA_NVRTC(PLAIT_CUDA_FIND)
#undef PLAIT_CUDA_FIND
  return missing;
}

std::string start(DriverApi& api) {
  const Library library = load_library("libcuda.so.1", Origin::system);
  if (!library.handle) return library.failure;
  const std::string missing = fill(api, library);
  int version = 0;
  if (api.cuDriverGetVersion) api.cuDriverGetVersion(&version);
  if (version < oldest_driver)
    return "the driver is of CUDA " + version_text(version) + "; " + version_text(oldest_driver) +
           " is needed";
  if (!missing.empty()) return "the driver has no " + missing;
  if (const CUresult result = api.cuInit(0); result == CUDA_ERROR_NO_DEVICE)
    return "the driver finds no device (" + name_in(api, result) + ")";
  else if (result != CUDA_SUCCESS)
    return "the driver cannot be initialised (" + name_in(api, result) + ")";
  if (const CUresult result = api.cuDeviceGetCount(&api.num_devices); result != CUDA_SUCCESS)
    return "the driver cannot count its devices (" + name_in(api, result) + ")";
  return api.num_devices > 0 ? "" : "the driver finds no device";
}

std::string start(NvrtcApi& api) {
  const Library library = load_library("libnvrtc.so.13", Origin::wheels);
  if (!library.handle) return library.failure;
  if (const std::string missing = fill(api, library); !missing.empty())
    return "libnvrtc.so.13 has no " + missing;
  if (api.nvrtcVersion(&api.major, &api.minor) != NVRTC_SUCCESS)
    return "libnvrtc.so.13 does not tell its version";
  api.folder = folder_of(reinterpret_cast<const void*>(api.nvrtcVersion));
  return {};
}

// As long as the process: kernels outlive main.
template <class Api>
const Loaded<Api>& loaded() {
  static const Loaded<Api>& loaded = *[] {
    auto* made = new Loaded<Api>;
    made->failure = start(made->api);
    return made;
  }();
  return loaded;
}

const char* fix_of(CUresult result) {
  if (is_fatal(result))
    return "start a new process: the device cannot be used in this one any more";
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    return "work on smaller pieces, or drop arrays that are no longer needed";
  return "look this error up in the documentation of CUDA's driver; nvidia-smi shows the device";
}

}  // namespace

const DriverApi* driver_api() {
  return loaded<DriverApi>().failure.empty() ? &loaded<DriverApi>().api : nullptr;
}
std::string why_no_driver() { return loaded<DriverApi>().failure; }

const NvrtcApi* nvrtc_api() {
  return loaded<NvrtcApi>().failure.empty() ? &loaded<NvrtcApi>().api : nullptr;
}
std::string why_no_nvrtc() { return loaded<NvrtcApi>().failure; }

bool is_fatal(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_UNKNOWN:
      return true;
    default:
      return false;
  }
}

std::string name_of(CUresult result) {
  const DriverApi& api = loaded<DriverApi>().api;
  const char* text = nullptr;
  std::string name = name_in(api, result);
  if (api.cuGetErrorString && api.cuGetErrorString(result, &text) == CUDA_SUCCESS && text)
    name += " (" + std::string(text) + ")";
  return name;
}

void throw_error(CUresult result, const char* action) {
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    throw MemoryError("CUDA cannot " + std::string(action) + ": " + name_of(result),
                      fix_of(result));
  throw BackendError("CUDA cannot " + std::string(action) + ": " + name_of(result), fix_of(result));
}

}  // namespace plait::cuda
