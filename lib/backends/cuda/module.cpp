// The cuda backend as a module of the library: it registers its devices, and itself, where CUDA's
// driver finds any.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string_view>

#include "backend.h"
#include "driver.h"

namespace plait::cuda {
namespace {

bool register_cuda() {
  const char* asked = std::getenv("PLAIT_CUDA");
  if (asked && std::string_view(asked) == "0") return false;
  return register_cuda_driver() && register_backend(make_backend(), Preference::loops);
}

[[maybe_unused]] const bool registered = register_cuda();

}  // namespace
}  // namespace plait::cuda
