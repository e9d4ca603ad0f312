// See api.h.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cublaslt/api.h"

#include <plait/base/error.h>

#include "backends/cuda/library.h"

namespace plait::cuda {
namespace {

constexpr const char* library_name = "libcublasLt.so.13";

struct Found {
  CublasLtApi api;
  std::string failure;  // empty: it can be used
};

std::string fill(CublasLtApi& api) {
  const Library library = load_library(library_name, Origin::wheels);
  if (!library.handle) return library.failure;
  std::string missing;
#define PLAIT_CUDA_FIND(name, ...)                                      \
  api.name = reinterpret_cast<decltype(api.name)>(library.find(#name)); \
  if (!api.name && missing.empty()) missing = #name;
  PLAIT_CUBLASLT(PLAIT_CUDA_FIND)
#undef PLAIT_CUDA_FIND
  return missing.empty() ? "" : std::string(library_name) + " has no " + missing;
}

// As long as the process: kernels outlive main.
const Found& found() {
  static const Found& found = *[] {
    auto* made = new Found;
    made->failure = fill(made->api);
    return made;
  }();
  return found;
}

const char* fix_of(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_ALLOC_FAILED || status == CUBLAS_STATUS_NOT_INITIALIZED)
    return "make sure that the device has memory left; nvidia-smi shows it";
  return "look this status up in the documentation of cuBLAS; without the library, which "
         "PLAIT_CUBLASLT=0 leaves out, generated loops run the product";
}

}  // namespace

const CublasLtApi* cublaslt_api() { return found().failure.empty() ? &found().api : nullptr; }
std::string why_no_cublaslt() { return found().failure; }

void throw_cublas_error(cublasStatus_t status, const char* action) {
  const char* name = found().api.cublasLtGetStatusName(status);
  throw BackendError("cuBLASLt cannot " + std::string(action) + ": " +
                         (name ? name : "status " + std::to_string(status)),
                     fix_of(status));
}

}  // namespace plait::cuda
