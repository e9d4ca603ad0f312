// Derivatives that the user defines, over flat lists of arrays: rules of a function, of a linear
// solve and of a root.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <plait/transforms/implicit.h>
#include <plait/transforms/transforms.h>

namespace plait::python {
namespace {

py::list flat_custom_jvp(py::object function, py::object jvp, py::object inputs,
                         const std::string& name) {
  TransformScope scope("custom_jvp", name);
  return from_arrays(flat::custom_jvp(to_function(function, name),
                                      to_function(jvp, "the jvp rule of " + name, Traces::part),
                                      to_arrays(inputs), name));
}

py::list flat_custom_vjp(py::object function, py::object fwd, py::object bwd, py::object inputs,
                         const std::string& name) {
  TransformScope scope("custom_vjp", name);
  const flat::ForwardRule forward = [shared = share(fwd)](std::span<const Array> primals) {
    py::gil_scoped_acquire gil;
    const py::tuple result = borrowed(static_cast<PyObject*>(shared.get()))(from_arrays(primals));
    return flat::Forward{to_arrays(result[0]), to_arrays(result[1])};
  };
  return from_arrays(flat::custom_vjp(to_function(function, name), forward,
                                      to_function(bwd, "the bwd rule of " + name, Traces::part),
                                      to_arrays(inputs), name));
}

bool stages_custom_rules(py::object inputs) { return flat::stages_custom_rules(to_arrays(inputs)); }

// A Python solver: a function of (a function of leaves, leaves).
flat::Solver to_solver(py::object solver) {
  if (solver.is_none()) return {};
  return [shared = share(std::move(solver))](const Function& f, std::span<const Array> y) {
    py::gil_scoped_acquire gil;
    const py::cpp_function callable(
        [f](py::object leaves) { return from_arrays(f(to_arrays(leaves))); });
    return to_arrays(borrowed(static_cast<PyObject*>(shared.get()))(callable, from_arrays(y)));
  };
}

py::list flat_custom_linear_solve(py::object matvec, py::object b, py::object solve,
                                  py::object transpose_solve, bool symmetric,
                                  const std::string& name) {
  return from_arrays(flat::custom_linear_solve(to_function(matvec, name), to_arrays(b),
                                               to_solver(std::move(solve)),
                                               to_solver(std::move(transpose_solve)), symmetric));
}

py::list flat_custom_root(py::object f, py::object guess, py::object solve,
                          py::object tangent_solve, const std::string& name) {
  TransformScope scope("custom_root", name);
  return from_arrays(flat::custom_root(to_function(f, name), to_arrays(guess),
                                       to_solver(std::move(solve)),
                                       to_solver(std::move(tangent_solve)), name));
}

}  // namespace

void add_custom(py::module_& module) {
  module.def("flat_custom_jvp", &flat_custom_jvp);
  module.def("flat_custom_vjp", &flat_custom_vjp);
  module.def("stages_custom_rules", &stages_custom_rules);
  module.def("flat_custom_linear_solve", &flat_custom_linear_solve);
  module.def("flat_custom_root", &flat_custom_root);
}

}  // namespace plait::python
