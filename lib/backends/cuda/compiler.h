// Texts of kernels to machine code, by NVRTC. What was compiled once is kept on disk.
//
// A text includes "plait/kernel.h" and others of device_texts() (texts.h), and nothing from disk.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace plait::cuda {

struct Cubin {
  std::string bytes;
  std::string log;  // warnings, registers and spills; empty where it was kept from before
};

// architecture: "sm_90". BackendError where there is no NVRTC, or it does not know the
// architecture; InternalError, with the compiler's log, for a text that is wrong.
Cubin compile(const std::string& source, std::string_view architecture);

}  // namespace plait::cuda
