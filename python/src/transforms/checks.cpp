// Checks of values and of functions: check, first_nan.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <plait/inspect/first_nan.h>
#include <plait/primitives/check.h>

namespace plait::python {

void add_checks(py::module_& module) {
  module.def("check", [](py::object pred, const std::string& message, py::object values) {
    check(to_array(pred.ptr(), {"check", "pred"}), message, to_arrays(values));
  });
  module.def("first_nan", [](const Jaxpr& jaxpr, py::object inputs) -> py::object {
    const std::optional<FirstNan> found = first_nan(jaxpr, to_arrays(inputs));
    if (!found) return py::none();
    py::list path, element;
    for (const FirstNan::Holder& holder : found->path)
      path.append(holder.where.empty() ? holder.name : holder.name + ", " + holder.where);
    for (std::int64_t index : found->element) element.append(index);
    return py::make_tuple(found->to_string(), found->equation, found->source.to_string(), path,
                          py::tuple(element));
  });
}

}  // namespace plait::python
