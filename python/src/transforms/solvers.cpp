// Solvers of scipy.sparse.linalg and scipy.optimize, over flat lists of arrays.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <plait/functions/scipy_optimize.h>
#include <plait/functions/scipy_sparse.h>

namespace plait::python {
namespace {

py::list flat_krylov(const std::string& name, py::object A, py::object b, py::object x0,
                     py::object tol, py::object atol, py::object maxiter, int restart,
                     py::object M) {
  namespace krylov = scipy::sparse::linalg;
  krylov::SolverOptions options;
  options.tol = to_array(tol.ptr(), {name, "tol"});
  options.atol = to_array(atol.ptr(), {name, "atol"});
  if (!maxiter.is_none()) options.maxiter = to_array(maxiter.ptr(), {name, "maxiter"});
  options.restart = restart;
  const auto method = name == "cg"         ? krylov::flat::Method::cg
                      : name == "bicgstab" ? krylov::flat::Method::bicgstab
                                           : krylov::flat::Method::gmres;
  return from_arrays(krylov::flat::solve(method, to_function(std::move(A), "A"), to_arrays(b),
                                         to_arrays(x0), options,
                                         M.is_none() ? Function() : to_function(M, "M")));
}

py::tuple flat_minimize(py::object fun, py::object x0, const std::string& method, py::object tol,
                        const py::dict& given, const std::string& name) {
  TransformScope scope("minimize", name);
  scipy::optimize::MinimizeOptions options;
  for (const auto& [key, value] : given) {
    const std::string option = py::str(key);
    if (option == "gtol") options.gtol = to_array(value.ptr(), {"minimize", "gtol"});
    if (option == "norm") options.norm = py::float_(py::reinterpret_borrow<py::object>(value));
    if (option == "maxiter") options.maxiter = py::int_(py::reinterpret_borrow<py::object>(value));
    if (option == "line_search_maxiter")
      options.line_search_maxiter = py::int_(py::reinterpret_borrow<py::object>(value));
    if (option == "maxcor") options.maxcor = py::int_(py::reinterpret_borrow<py::object>(value));
  }
  std::optional<Array> bound;
  if (!tol.is_none()) bound = to_array(tol.ptr(), {"minimize", "tol"});
  const Function function = to_function(std::move(fun), name);
  const scipy::optimize::OptimizeResults found =
      scipy::optimize::minimize([&function](const Array& x) { return function(Arrays{x})[0]; },
                                to_array(x0.ptr(), {"minimize", "x0"}), method, bound, options);
  return py::make_tuple(to_python(found.x), to_python(found.success), to_python(found.status),
                        to_python(found.fun), to_python(found.jac),
                        found.hess_inv ? to_python(*found.hess_inv) : py::object(py::none()),
                        to_python(found.nfev), to_python(found.njev), to_python(found.nit));
}

}  // namespace

void add_solvers(py::module_& module) {
  module.def("flat_krylov", &flat_krylov);
  module.def("flat_minimize", &flat_minimize);
}

}  // namespace plait::python
