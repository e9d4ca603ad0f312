// For tests that compile kernels: whether there is an NVRTC. Where none is, a case tests nothing,
// and says so, unless PLAIT_REQUIRE_NVRTC is set: then it fails.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include "../backends/backend_here.h"
#include "backends/cuda/api.h"

namespace plait::cuda {

inline bool has_nvrtc() {
  const bool has = nvrtc_api() != nullptr;
  if (is_required("nvrtc")) REQUIRE_MESSAGE(has, why_no_nvrtc());
  if (!has) MESSAGE("skipped: ", why_no_nvrtc());
  return has;
}

}  // namespace plait::cuda
