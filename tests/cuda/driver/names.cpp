// Every function of the driver's interface is there, since libraries that miss one go without a
// driver. Those that the stand-in does not have say so.
// SPDX-License-Identifier: Apache-2.0

extern "C" {

[[gnu::visibility("default")]] int standin_not_supported() { return 801; }

// Weaker than the function itself, where there is one.
#define NAME(name) \
  [[gnu::visibility("default"), gnu::weak, gnu::alias("standin_not_supported")]] int name();
#include "names.inc"
#undef NAME
}
