// The texts that kernels include, kept in the module: there are no files to be found at run time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace plait::cuda {

// As kernels include it: "plait/kernel.h", "cmath". Both end in a zero.
struct Text {
  std::string_view name, text;
};
// Written by embed.py when plait is built.
std::span<const Text> device_texts();

}  // namespace plait::cuda
