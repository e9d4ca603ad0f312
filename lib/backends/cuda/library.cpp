// See library.h.
// SPDX-License-Identifier: Apache-2.0
#include "library.h"

namespace plait::cuda {

Library load_library(const std::string& name, Origin origin) {
  Places places{"PLAIT_CUDA_LIBRARIES"};
  if (origin == Origin::wheels) {
    places.in_wheels = {"/nvidia/*/lib"};
    places.last = {"/usr/local/cuda*/lib64"};
  }
  return plait::load_library(name, places);
}

}  // namespace plait::cuda
