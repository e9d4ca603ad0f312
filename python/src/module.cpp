// The extension module plait._plait: adds the parts in the order of their dependences.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

PYBIND11_MODULE(_plait, module) {
  using namespace plait::python;
  module.doc() = "The C++ side of plait.";
  module.attr("__version__") = PLAIT_VERSION;
  add_errors(module);
  add_source(module);
  add_array(module);
  add_convert(module);
  add_sizes(module);
  add_access(module);
  add_devices(module);
  add_builtin(module);
  add_pytree(module);
  add_jaxpr(module);
  add_flat(module);
  add_mesh(module);
  add_custom(module);
  add_solvers(module);
  add_checkpoint(module);
  add_traced(module);
  add_control(module);
  add_jit(module);
  add_interchange(module);
  add_programs(module);
  add_saved(module);
  add_profile(module);
  add_inspect(module);
  add_extend(module);
  add_host_call(module);
  add_checks(module);
  add_where(module);
  add_autocast(module);
  add_tape(module);
  add_rewrite(module);
  add_interrupts();
  for (const char* name :
       {"At", "AtIndex", "HookHandle", "Jaxpr", "JaxprEquation", "JitCache", "Policy", "Size",
        "Source", "TreeDef", "ScopeSummary", "Summary", "Difference"})
    forbid_construction(module.attr(name));
}
