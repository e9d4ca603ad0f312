// where with functions, over flat lists of arrays, for the package's _where.py.
// SPDX-License-Identifier: Apache-2.0
#include <plait/control/where.h>

#include "bindings.h"

namespace plait::python {

void add_where(py::module_& module) {
  module.def("flat_where", [](py::object condition, py::object f, py::object g, py::object xs,
                              const std::string& name, py::object place) {
    TransformScope scope("where", name);
    return from_arrays(
        flat::where(to_array(condition.ptr(), {"where", "condition"}), to_function(f, name),
                    to_function(g, name), to_arrays(xs),
                    [place](std::size_t index) { return place(index).cast<std::string>(); }));
  });
}

}  // namespace plait::python
