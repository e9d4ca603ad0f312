// Derivatives that the user defines, over flat lists of arrays: rules of a function, of a linear
// solve and of a root.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <plait/transforms/custom_rules.h>
#include <plait/transforms/implicit.h>
#include <plait/transforms/transforms.h>

namespace plait::python {
namespace {

// A rule, with its first argument: whether each input varies.
py::object bound(const std::shared_ptr<void>& rule, const Flags& varies) {
  py::list flags;
  for (const bool flag : varies) flags.append(flag);
  return py::module_::import("functools")
      .attr("partial")(borrowed(static_cast<PyObject*>(rule.get())), flags);
}

// See CustomRules::is_failure. A user's interrupt is none.
bool is_failure() {
  try {
    throw;
  } catch (const py::error_already_set& error) {
    py::gil_scoped_acquire gil;
    return error.matches(PyExc_Exception);
  } catch (const Error&) {
    return true;
  } catch (...) {
    return false;
  }
}

py::list flat_custom_jvp(py::object function, py::object jvp, py::object inputs,
                         const std::string& name, bool reads_zeros) {
  TransformScope scope("custom_jvp", name);
  const std::string what = "the jvp rule of " + name;
  CustomRules rules;
  rules.reads_zeros = reads_zeros;
  rules.is_failure = is_failure;
  if (reads_zeros)
    rules.jvp = [what, shared = share(jvp)](std::span<const Array> both, const Flags& varies) {
      py::gil_scoped_acquire gil;
      return to_function(bound(shared, varies), what, Traces::part)(both);
    };
  else
    rules.jvp = [rule = to_function(jvp, what, Traces::part)](std::span<const Array> both,
                                                              const Flags&) { return rule(both); };
  return from_arrays(flat::custom(to_function(function, name), rules, to_arrays(inputs), name));
}

py::list flat_custom_vjp(py::object function, py::object fwd, py::object bwd, py::object inputs,
                         const std::string& name, bool reads_zeros) {
  TransformScope scope("custom_vjp", name);
  CustomRules rules;
  rules.reads_zeros = reads_zeros;
  rules.is_failure = is_failure;
  rules.fwd = [shared = share(fwd), reads_zeros](std::span<const Array> primals,
                                                 const Flags& varies) {
    py::gil_scoped_acquire gil;
    const py::object rule =
        reads_zeros ? bound(shared, varies) : borrowed(static_cast<PyObject*>(shared.get()));
    const py::tuple result = rule(from_arrays(primals));
    return flat::Forward{to_arrays(result[0]), to_arrays(result[1])};
  };
  rules.bwd = to_function(bwd, "the bwd rule of " + name, Traces::part);
  return from_arrays(flat::custom(to_function(function, name), rules, to_arrays(inputs), name));
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
                                       to_solver(std::move(tangent_solve)), name, is_failure));
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
