// The tape in Python: what plait.variable, no_grad and the gradient methods of Array call. backward
// runs without the GIL, and hooks acquire it.
// SPDX-License-Identifier: Apache-2.0
#include "array.h"

#include <plait/transforms/tape_nodes.h>

namespace plait::python {

PyObject* grad_attribute(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const std::optional<Array> grad = grad_of(array_of(self));
    if (!grad) Py_RETURN_NONE;
    return wrap(*grad);
  });
}

int set_grad_attribute(PyObject* self, PyObject* value, void*) {
  return guarded_int([&]() -> int {
    const bool none = !value || value == Py_None;
    set_grad(array_of(self), none ? std::nullopt : std::optional(to_array(value, {"grad"})));
    return 0;
  });
}

PyObject* requires_grad_attribute(PyObject* self, void*) {
  return guarded([&] { return PyBool_FromLong(requires_grad(array_of(self))); });
}

PyObject* backward_method(PyObject* self, PyObject* arguments, PyObject* names) {
  static const char* const keywords[] = {"cotangent", "retain_graph", "create_graph", nullptr};
  PyObject* cotangent = Py_None;
  int retain_graph = 0, create_graph = 0;
  if (!PyArg_ParseTupleAndKeywords(arguments, names, "|Opp:backward", const_cast<char**>(keywords),
                                   &cotangent, &retain_graph, &create_graph))
    return nullptr;
  return guarded([&]() -> PyObject* {
    Source::forget_line();
    BackwardOptions options{{}, retain_graph != 0, create_graph != 0};
    if (cotangent != Py_None) options.cotangent = to_array(cotangent, {"backward", "cotangent"});
    const Array y = array_of(self);
    without_gil([&] { backward(y, options); });
    Py_RETURN_NONE;
  });
}

PyObject* detach_method(PyObject* self, PyObject*) {
  return guarded([&] { return wrap_unwritable(detach(array_of(self)), "detach()"); });
}

PyObject* register_hook_method(PyObject* self, PyObject* hook) {
  return guarded([&] {
    if (!PyCallable_Check(hook))
      throw DtypeError(
          "register_hook: " + text_of(hook) + " of type " + type_name_of(hook) + " is no function",
          "pass a function of the gradient");
    const GradientHook call =
        [shared = share(borrowed(hook))](const Array& gradient) -> std::optional<Array> {
      py::gil_scoped_acquire gil;
      const py::object result = borrowed(static_cast<PyObject*>(shared.get()))(to_python(gradient));
      if (result.is_none()) return std::nullopt;
      return to_array(result.ptr(), {"the result of a hook"});
    };
    return py::cast(register_hook(array_of(self), call)).release().ptr();
  });
}

void add_tape(py::module_& module) {
  py::class_<HookHandle>(module, "HookHandle", "What register_hook returns.")
      .def("remove", &HookHandle::remove, "Removes the hook; harmless when done before.");
  module.def("variable", [](py::object value) {
    return to_python(variable(to_array(value.ptr(), {"variable"})));
  });
  // Returns the previous setting.
  module.def("set_recording", [](bool on) {
    const bool before = is_recording();
    set_recording(on);
    return before;
  });
  module.def("num_variables", &num_variables);
  module.def("may_record", &may_record);
}

}  // namespace plait::python
