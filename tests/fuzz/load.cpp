// The fuzzer over saved programs: see targets.h; ./dev fuzz load runs it.
// SPDX-License-Identifier: Apache-2.0
#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::load({reinterpret_cast<const char*>(data), size});
  return 0;
}
