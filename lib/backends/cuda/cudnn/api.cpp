// See api.h.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cudnn/api.h"

#include <plait/base/error.h>

#include "backends/cuda/cublaslt/api.h"
#include "backends/cuda/library.h"

namespace plait::cuda {
namespace {

constexpr const char* cudnn_name = "libcudnn.so.9";

struct FoundCudnn {
  CudnnApi api;
  std::string failure;  // empty: it can be used
};

std::string fill_cudnn(CudnnApi& api) {
  // It looks for these by name, and finds what is loaded. Without the first it ends the process
  // when a graph is described; without NVRTC it has fewer engines.
  if (!cublaslt_api()) return why_no_cublaslt() + ", which cuDNN needs";
  if (const NvrtcApi* nvrtc = nvrtc_api()) load_all(nvrtc->folder, "libnvrtc-builtins.so.*");
  const Library library = load_library(cudnn_name, Origin::wheels);
  if (!library.handle) return library.failure;
  std::string missing;
#define PLAIT_CUDA_FIND(name, ...)                                      \
  api.name = reinterpret_cast<decltype(api.name)>(library.find(#name)); \
  if (!api.name && missing.empty()) missing = #name;
  PLAIT_CUDNN(PLAIT_CUDA_FIND)
#undef PLAIT_CUDA_FIND
  return missing.empty() ? "" : std::string(cudnn_name) + " has no " + missing;
}

// As long as the process: kernels outlive main.
const FoundCudnn& found_cudnn() {
  static const FoundCudnn& found = *[] {
    auto* made = new FoundCudnn;
    made->failure = fill_cudnn(made->api);
    return made;
  }();
  return found;
}

const char* fix_of_cudnn(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ||
      status == CUDNN_STATUS_NOT_INITIALIZED)
    return "make sure that the device has memory left; nvidia-smi shows it";
  return "CUDNN_LOGLEVEL_DBG=2 shows more; without the library, which PLAIT_CUDNN=0 leaves out, "
         "generated loops run the convolution";
}

}  // namespace

const CudnnApi* cudnn_api() { return found_cudnn().failure.empty() ? &found_cudnn().api : nullptr; }
std::string why_no_cudnn() { return found_cudnn().failure; }

std::string name_of_cudnn(cudnnStatus_t status) {
  const CudnnApi& api = found_cudnn().api;
  const char* const name = api.cudnnGetErrorString(status);
  char said[256] = "";
  api.cudnnGetLastErrorString(said, sizeof said);
  std::string text = name ? name : "status " + std::to_string(status);
  if (said[0] != '\0') text += " (" + std::string(said) + ")";
  return text;
}

void throw_cudnn_error(cudnnStatus_t status, const char* action) {
  throw BackendError("cuDNN cannot " + std::string(action) + ": " + name_of_cudnn(status),
                     fix_of_cudnn(status));
}

}  // namespace plait::cuda
