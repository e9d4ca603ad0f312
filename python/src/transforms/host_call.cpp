// host_call for Python: the function gets read-only NumPy arrays, and an exception that it raises
// becomes the cause of a HostError.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <plait/primitives/host_call.h>

namespace plait::python {
namespace {

// Rethrows the current Python exception as a HostError. KeyboardInterrupt and the like pass
// unchanged.
[[noreturn]] void rethrow_of(const std::string& name, const py::error_already_set& error) {
  if (!error.matches(PyExc_Exception)) throw;
  std::string text = utf8_of(py::str(error.value()).ptr());
  text = text.substr(0, text.find('\n'));
  throw HostError("host_call: `" + name + "` raised " + type_name_of(error.value().ptr()) +
                      (text.empty() ? "" : ": " + text),
                  "mend the function, or what it is given; what it raised is the cause of this",
                  std::current_exception());
}

// function takes a list of NumPy arrays; finish converts what it returns to a list of array-likes.
Callable to_host_function(const py::object& function, const py::object& finish,
                          const std::string& name) {
  auto run = [shared = share(py::make_tuple(function, finish)),
              name](std::span<const Array> inputs) {
    py::gil_scoped_acquire gil;
    Source::forget_line();
    py::list arguments;
    for (const Array& input : inputs) arguments.append(to_numpy(input));
    PyObject* const pair = static_cast<PyObject*>(shared.get());
    py::object results;
    try {
      results = borrowed(PyTuple_GET_ITEM(pair, 0))(arguments);
    } catch (const py::error_already_set& error) {
      rethrow_of(name, error);
    }
    Arrays arrays;
    for (py::handle result : borrowed(PyTuple_GET_ITEM(pair, 1))(results))
      arrays.push_back(to_array(result.ptr(), {"host_call", "the result of " + name}));
    return arrays;
  };
  return Callable(name, std::make_shared<Function>(std::move(run)));
}

// A context manager: while it is entered, host calls are refused.
struct NoHostCallsHere {
  explicit NoHostCallsHere(std::string reason) : reason(std::move(reason)) {}
  std::string reason;
  std::optional<NoHostCalls> scope;
};

}  // namespace

void add_host_call(py::module_& module) {
  module.def("flat_host_call",
             [](py::object function, py::object finish, py::object out_types, py::object inputs,
                const std::string& name, bool ordered, bool batched) {
               std::vector<Aval> outputs;
               for (py::handle type : out_types) {
                 outputs.push_back(to_aval(type.ptr(), {"host_call", "out_types"}));
                 outputs.back().weak = false;
               }
               return from_arrays(bind_host_call(to_host_function(function, finish, name), outputs,
                                                 to_arrays(inputs), {ordered, batched, name}));
             });
  py::class_<NoHostCallsHere>(module, "NoHostCalls",
                              "While it is entered, host calls are refused on this thread.")
      .def(py::init<std::string>())
      .def("__enter__", [](NoHostCallsHere& self) { self.scope.emplace(self.reason); })
      .def("__exit__", [](NoHostCallsHere& self, const py::args&) { self.scope.reset(); });
}

}  // namespace plait::python
