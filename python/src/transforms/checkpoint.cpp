// checkpoint over flat lists of arrays, and its policies.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <plait/transforms/checkpoint_policies.h>
#include <plait/transforms/transforms.h>

namespace plait::python {
namespace {

template <auto policy>
Callable of_names(const py::args& names) {
  std::vector<std::string> list;
  for (py::handle name : names) {
    if (!PyUnicode_Check(name.ptr()))
      throw DtypeError("checkpoint_policies: " + text_of(name.ptr()) + " is no name",
                       "give the names of tags as strings");
    list.push_back(utf8_of(name.ptr()));
  }
  return policy(list);
}

// A policy that asks a Python function, by the name of the primitive.
Callable make_policy(const std::string& name, py::object keep) {
  return flat::make_policy(name, [shared = share(std::move(keep))](const Equation& equation) {
    py::gil_scoped_acquire gil;
    const py::object answer =
        borrowed(static_cast<PyObject*>(shared.get()))(std::string(equation.primitive->name()));
    if (!PyBool_Check(answer.ptr()))
      throw DtypeError("checkpoint: the policy returned " + text_of(answer.ptr()),
                       "return True or False");
    return answer.is(py::bool_(true));
  });
}

py::list flat_checkpoint(py::object function, py::object inputs, const Callable& policy,
                         const std::string& name) {
  TransformScope scope("checkpoint", name);
  return from_arrays(
      flat::checkpoint(to_function(function, name), to_arrays(inputs), policy, name));
}

}  // namespace

void add_checkpoint(py::module_& module) {
  py::class_<Callable>(module, "Policy", "Which equations' results checkpoint keeps.")
      .def("__repr__", [](const Callable& policy) { return "<policy " + policy.name() + ">"; });
  module.def("nothing_saveable", &flat::nothing_saveable);
  module.def("everything_saveable", &flat::everything_saveable);
  module.def("dots_saveable", &flat::dots_saveable);
  module.def("dots_with_no_batch_dims_saveable", &flat::dots_with_no_batch_dims_saveable);
  module.def("save_only_these_names", &of_names<flat::save_only_these_names>);
  module.def("save_any_names_but_these", &of_names<flat::save_any_names_but_these>);
  module.def("save_anything_except_these_names", &of_names<flat::save_anything_except_these_names>);
  module.def("save_from_both_policies", &flat::save_from_both_policies);
  module.def("make_policy", &make_policy);
  module.def("flat_checkpoint", &flat_checkpoint);
}

}  // namespace plait::python
