// The fuzzer over the text form of loop programs: see targets.h; ./dev fuzz loops runs it.
// SPDX-License-Identifier: Apache-2.0
#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::loops({reinterpret_cast<const char*>(data), size});
  return 0;
}
