// The fuzzer over the reader of NumPy's files: see targets.h; ./dev fuzz npy runs it.
// SPDX-License-Identifier: Apache-2.0
#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::npy({reinterpret_cast<const char*>(data), size});
  return 0;
}
