// The backends of CUDA devices as a module of the library: it registers the devices, and what runs
// there, where CUDA's driver finds any.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string_view>

#include "backend.h"
#include "cublaslt/backend.h"
#include "cudnn/backend.h"
#include "driver.h"

namespace plait::cuda {
namespace {

bool is_left_out(const char* variable) {
  const char* asked = std::getenv(variable);
  return asked && std::string_view(asked) == "0";
}

bool register_cuda() {
  if (is_left_out("PLAIT_CUDA") || !register_cuda_driver()) return false;
  if (!is_left_out("PLAIT_CUBLASLT")) register_backend(make_product_backend(), Preference::library);
  if (!is_left_out("PLAIT_CUDNN")) register_backend(make_cudnn_backend(), Preference::library);
  return register_backend(make_backend(), Preference::loops);
}

[[maybe_unused]] const bool registered = register_cuda();

}  // namespace
}  // namespace plait::cuda
