// autocast over flat lists of arrays. See flat.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <plait/transforms/autocast.h>

namespace plait::python {

void add_autocast(py::module_& module) {
  module.def("flat_autocast", [](py::object function, py::object inputs, py::object dtype,
                                 const std::vector<std::string>& low,
                                 const std::vector<std::string>& full, const std::string& name) {
    TransformScope scope("autocast", name);
    const AutocastPolicy policy{to_dtype(dtype.ptr(), {"autocast", "policy"}), low, full};
    return from_arrays(flat::autocast(to_function(function, name), to_arrays(inputs), policy));
  });
}

}  // namespace plait::python
