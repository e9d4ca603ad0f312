// The fuzzer over the safetensors reader: see targets.h; ./dev fuzz safetensors runs it.
// SPDX-License-Identifier: Apache-2.0
#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::safetensors({reinterpret_cast<const char*>(data), size});
  return 0;
}
