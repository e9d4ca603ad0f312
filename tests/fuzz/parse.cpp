// The fuzzer over the text form of jaxprs: see targets.h; ./dev fuzz parse runs it.
// SPDX-License-Identifier: Apache-2.0
#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::parse({reinterpret_cast<const char*>(data), size});
  return 0;
}
