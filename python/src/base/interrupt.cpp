// Signals during long calls: their handlers run between kernels and between steps of loops, and
// what they raise (KeyboardInterrupt, by Ctrl-C) ends the call.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <plait/base/interrupt.h>

#include <unistd.h>

namespace plait::python {
namespace {

// Python runs handlers on the main thread only. The GIL may be held or not.
void run_signal_handlers() {
  if (gettid() != getpid() || !Py_IsInitialized()) return;
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

}  // namespace

void add_interrupts() { set_interrupt_check(run_signal_handlers); }

}  // namespace plait::python
